------------------------------- MODULE Contents -------------------------------
(* A store that goes back in time, and what counts as whole meanwhile.

   One node. Blocks 1..Blocks are addresses, each written at most once. The store has a marker: the number of its contents,
   a random part, and the run of the server that they were last seen whole in; and a high-water mark, which its agent raises now
   and then, and which gateways tell the next agent. Blocks, marker and mark go back together. The run of a server that
   may lose what it acknowledged changes with every restart. The catalog knows the contents, and for each
   block in which ones it was vouched for: when it was stored, or when it was found again. Losses of which nobody can know
   yet are allowed to be there: what is asked is that after an agent has answered anything, no block counts as whole that is
   not there.                                                                                                         *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS
  Blocks,
  Volatile,  \* an acknowledged block may be lost by a restart; else only with the marker
  Restarts, Snapshots, Losses, Marks, Highest,  \* budgets; Highest: how many names of contents there are
  Without
On(rule) == rule \notin Without
Addresses == 1..Blocks
Max(a, b) == IF a > b THEN a ELSE b

VARIABLES
  known, slot, inc,                \* catalog: the contents; address -> none/live/dead, and of which contents
  heard,                           \* the highest mark that a gateway heard, and of which contents
  blocks, marker, noted, run,      \* store; noted is the run that the marker names
  water,                           \* its high-water mark
  drawn,                           \* random parts that were drawn
  saved,                           \* a state that it may go back to
  serving,                         \* agent: contents that it serves
  told, seen,                      \* agent: contents that it heard the catalog to know; the highest mark it heard or wrote, and of which contents
  receipts,                        \* messages: <<address, contents>>
  announced, budget, answered      \* answered: the agent has answered since the store last lost something
catalog == <<known, slot, inc, heard>>
store == <<blocks, marker, noted, run, water, saved, drawn>>
vars == <<catalog, store, serving, told, seen, receipts, announced, budget, answered>>

None == [number |-> 0, random |-> 0]
Nothing == [of |-> None, mark |-> 0]
First == [number |-> 1, random |-> 1]
State == [blocks |-> blocks, marker |-> marker, noted |-> noted, water |-> water]
Init ==
  /\ known = First /\ slot = [a \in Addresses |-> IF a = 1 THEN "live" ELSE "none"] /\ inc = [a \in Addresses |-> IF a = 1 THEN First ELSE None]
  /\ blocks = {1} /\ marker = First /\ noted = 1 /\ run = 1 /\ water = 1 /\ heard = [of |-> First, mark |-> 1] /\ saved = State /\ drawn = 1
  /\ serving = First /\ told = First /\ seen = heard /\ receipts = {} /\ announced = {1}
  /\ budget = [restart |-> Restarts, snapshot |-> Snapshots, loss |-> Losses, mark |-> Marks] /\ answered = TRUE

\* Whether a mark is of newer contents than another, or higher.
Later(one, other) == one.of.number > other.of.number \/ (one.of = other.of /\ one.mark > other.mark)

\* Contents of which nobody knows whether they are those that were there before.
Outdated == told # marker /\ told.number >= marker.number
Doubt == marker = None \/ (On("run") /\ Volatile /\ noted # run) \/ (On("monotone") /\ Outdated) \/ (On("water") /\ seen.of = marker /\ water < seen.mark)
\* The agent looks at the marker and at the run of the server before it answers (guard).
Serves == serving # None /\ (On("marker") => marker = serving) /\ ~(On("run") /\ Volatile /\ noted # run)

(* ------------------------------------------------------------------ writes, deletes, repairs *)
\* An announced block lands, under the guard.
Land(a) ==
  /\ Serves /\ a \notin announced /\ \A b \in Addresses : b < a => b \in announced
  /\ announced' = announced \cup {a} /\ blocks' = blocks \cup {a} /\ receipts' = receipts \cup {<<a, serving>>} /\ answered' = TRUE
  /\ UNCHANGED <<catalog, marker, noted, run, water, saved, drawn, serving, told, seen, budget>>
\* A block of contents in doubt is looked for; whoever finds it has a receipt.
Look(a) ==
  /\ Serves /\ slot[a] = "live" /\ inc[a] # known /\ (On("look") => a \in blocks) /\ <<a, serving>> \notin receipts
  /\ receipts' = receipts \cup {<<a, serving>>} /\ answered' = TRUE
  /\ UNCHANGED <<catalog, store, serving, told, seen, announced, budget>>
\* A receipt counts in the catalog if it is of the contents that are known now.
Commit(r) ==
  /\ r \in receipts /\ slot[r[1]] # "dead" /\ (On("whole") => r[2] = known)
  /\ slot' = [slot EXCEPT ![r[1]] = "live"] /\ inc' = [inc EXCEPT ![r[1]] = IF On("whole") THEN r[2] ELSE known]
  /\ receipts' = receipts \ {r}
  /\ UNCHANGED <<known, heard, store, serving, told, seen, announced, budget, answered>>
\* A commit takes the block's place, be it a write, or a repair elsewhere; then it is deleted.
Supersede(a) ==
  /\ slot[a] = "live" /\ slot' = [slot EXCEPT ![a] = "dead"]
  /\ UNCHANGED <<known, heard, inc, store, serving, told, seen, receipts, announced, budget, answered>>
Delete(a) ==
  /\ Serves /\ slot[a] = "dead" /\ a \in blocks /\ blocks' = blocks \ {a} /\ answered' = TRUE
  /\ UNCHANGED <<catalog, marker, noted, run, water, saved, drawn, serving, told, seen, receipts, announced, budget>>

(* ------------------------------------------------------------------ the store *)
Snapshot ==
  /\ budget.snapshot > 0 /\ saved # State /\ saved' = State /\ budget' = [budget EXCEPT !.snapshot = @ - 1]
  /\ UNCHANGED <<catalog, blocks, marker, noted, run, water, drawn, serving, told, seen, receipts, announced, answered>>
Restart ==
  /\ budget.restart > 0 /\ run' = run + 1 /\ budget' = [budget EXCEPT !.restart = @ - 1]
  /\ UNCHANGED <<catalog, blocks, marker, noted, water, saved, drawn, serving, told, seen, receipts, announced, answered>>
Back == blocks' = saved.blocks /\ marker' = saved.marker /\ noted' = saved.noted /\ water' = saved.water /\ answered' = FALSE
GoBack ==
  /\ Volatile /\ budget.loss > 0 /\ saved # State /\ budget' = [budget EXCEPT !.loss = @ - 1]
  /\ run' = run + 1 /\ Back
  /\ UNCHANGED <<catalog, saved, drawn, serving, told, seen, receipts, announced>>
\* It goes back below an agent, and no restart of a server tells: only the marker does, so that it is assumed to be another one than
\* the catalog knows.
Swap ==
  /\ ~Volatile /\ budget.loss > 0 /\ saved.marker # known /\ budget' = [budget EXCEPT !.loss = @ - 1]
  /\ Back /\ UNCHANGED <<catalog, run, saved, drawn, serving, told, seen, receipts, announced>>
\* It goes back over the marker that is known, while its agent is away: only the high-water mark tells, so that it is assumed to
\* have been raised since, and heard. Below a running agent that is seen when the mark is raised next.
Restore ==
  /\ ~Volatile /\ budget.loss > 0 /\ saved.marker = known /\ heard.of = known /\ saved.water < heard.mark /\ budget' = [budget EXCEPT !.loss = @ - 1]
  /\ Back /\ serving' = None /\ told' = None /\ seen' = Nothing
  /\ UNCHANGED <<catalog, run, saved, drawn, receipts, announced>>
Lose ==
  /\ budget.loss > 0 /\ marker # None /\ budget' = [budget EXCEPT !.loss = @ - 1]
  /\ run' = (IF Volatile THEN run + 1 ELSE run) /\ blocks' = {} /\ marker' = None /\ water' = 0 /\ answered' = FALSE
  /\ UNCHANGED <<catalog, noted, saved, drawn, serving, told, seen, receipts, announced>>

(* ------------------------------------------------------------------ the agent *)
\* It raises the mark of the store, and a gateway hears of it.
Mark ==
  /\ Serves /\ budget.mark > 0 /\ ~(seen.of = marker /\ water < seen.mark) /\ budget' = [budget EXCEPT !.mark = @ - 1]
  /\ water' = water + 1 /\ seen' = [of |-> serving, mark |-> water']
  /\ UNCHANGED <<catalog, blocks, marker, noted, run, saved, drawn, serving, told, receipts, announced, answered>>
Hear ==
  /\ serving # None /\ seen.of = serving /\ Later(seen, heard) /\ heard' = seen
  /\ UNCHANGED <<known, slot, inc, store, serving, told, seen, receipts, announced, budget, answered>>
\* It finds another marker or another run, or starts again and knows nothing: it serves nothing any more.
Notice ==
  /\ serving # None /\ ~Serves /\ serving' = None
  /\ UNCHANGED <<catalog, store, told, seen, receipts, announced, budget, answered>>
Crash ==
  /\ budget.restart > 0 /\ budget' = [budget EXCEPT !.restart = @ - 1] /\ (serving # None \/ told # None)
  /\ serving' = None /\ told' = None /\ seen' = Nothing
  /\ UNCHANGED <<catalog, store, receipts, announced, answered>>
\* A gateway says what the catalog knows, and how far the store had come.
Tell ==
  /\ (told # known \/ Later(heard, seen)) /\ told' = (IF known.number >= told.number THEN known ELSE told) /\ seen' = (IF Later(heard, seen) THEN heard ELSE seen)
  /\ UNCHANGED <<catalog, store, serving, receipts, announced, budget, answered>>
\* Contents in doubt get a name that nobody has seen; of these nobody has heard a mark.
Renew ==
  /\ serving = None /\ Doubt /\ drawn < Highest /\ drawn' = drawn + 1
  /\ marker' = [number |-> Max(marker.number, told.number) + 1, random |-> drawn'] /\ noted' = run
  /\ UNCHANGED <<catalog, blocks, run, water, saved, serving, told, seen, receipts, announced, budget, answered>>
\* A gateway registers contents: only newer ones, and before the agent serves.
Register ==
  /\ serving = None /\ ~Doubt /\ (IF On("monotone") THEN marker.number > known.number ELSE marker # known)
  /\ known' = marker
  /\ UNCHANGED <<slot, inc, heard, store, serving, told, seen, receipts, announced, budget, answered>>
\* The greeting that goes before says how far the store had come.
Attach ==
  /\ serving = None /\ ~Doubt /\ seen # Nothing /\ (On("first") => marker = known)
  /\ serving' = marker /\ answered' = TRUE
  /\ UNCHANGED <<catalog, store, told, seen, receipts, announced, budget>>

Next ==
  \/ \E a \in Addresses : Land(a) \/ Look(a) \/ Supersede(a) \/ Delete(a)
  \/ \E r \in receipts : Commit(r)
  \/ Snapshot \/ Restart \/ GoBack \/ Swap \/ Restore \/ Lose \/ Mark \/ Hear \/ Notice \/ Crash \/ Tell \/ Renew \/ Register \/ Attach
Spec ==
  /\ Init /\ [][Next]_vars
  /\ WF_vars(Notice) /\ WF_vars(Tell) /\ WF_vars(Renew) /\ WF_vars(Register) /\ WF_vars(Attach)
  /\ \A a \in Addresses : WF_vars(Look(a)) /\ SF_vars(\E r \in receipts : r[1] = a /\ Commit(r))

(* ------------------------------------------------------------------ invariants *)
\* What 6(b), status and the repair queue take for whole.
Whole(a) == slot[a] = "live" /\ inc[a] = known
NoFalseWhole == answered => \A a \in Addresses : Whole(a) => a \in blocks
\* In the end all that is there counts, while there are names left.
Healed == <>[](drawn < Highest => \A a \in Addresses : slot[a] = "live" /\ a \in blocks => Whole(a))
\* To be violated: of the blocks of contents in doubt one was found and one is gone.
Idleness == ~(answered /\ known # First /\ \E a, b \in Addresses : slot[a] = "live" /\ slot[b] = "live" /\ Whole(a) /\ a = 1 /\ ~Whole(b) /\ b \notin blocks)
=============================================================================
