-------------------------------- MODULE Bound --------------------------------
(* Which node is a store? Agents are started by people on whatever store and under whatever id they like; files are moved from
   one store to another by hand. Blocks carry the id of their node in their header. Two nodes, two stores, as many agents as
   there are; one block for each write. Stores may be from before this rule existed: then they have no id, and blocks.   *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS Agents, Blocks, Starts, Moves, Old, Without
On(rule) == rule \notin Without
Nodes == {"n1", "n2"}
Stores == {"s1", "s2"}
Nobody == "nobody"

VARIABLES
  bound,    \* store -> node that it is bound to
  there,    \* store -> blocks
  header,   \* block -> node
  live,     \* catalog: blocks that records name, each on the node of its header
  address,  \* catalog: node -> agent
  runs,     \* agent -> [id, store], or none
  listed,   \* what a sweep listed: <<agent, node as it said, block>>
  budget
vars == <<bound, there, header, live, address, runs, listed, budget>>
Off == [id |-> Nobody, store |-> Nobody]
Init ==
  /\ bound = [s \in Stores |-> Nobody] /\ header = [b \in Blocks |-> Nobody] /\ address = [n \in Nodes |-> Nobody]
  /\ there = [s \in Stores |-> {}] /\ live = {} /\ runs = [a \in Agents |-> Off] /\ listed = {}
  /\ budget = [start |-> Starts, move |-> Moves, old |-> Old]

\* An agent serves under an id only if the store is bound to it, or to nobody and holds no block of another node. It is bound
\* by creating the marker, which only one can. Two agents of one node on one store do no harm.
Bindable(s, n) == bound[s] = Nobody /\ (On("adopt") => \A b \in there[s] : header[b] = n)
Start(a, n, s) ==
  /\ budget.start > 0 /\ runs[a] = Off
  /\ (On("node") => bound[s] = n \/ Bindable(s, n))
  /\ bound' = IF bound[s] = Nobody THEN [bound EXCEPT ![s] = n] ELSE bound
  /\ runs' = [runs EXCEPT ![a] = [id |-> n, store |-> s]] /\ budget' = [budget EXCEPT !.start = @ - 1]
  /\ UNCHANGED <<there, header, live, address, listed>>
\* Before this rule: agents did as they liked.
StartOld(a, n, s) ==
  /\ budget.old > 0 /\ runs[a] = Off /\ bound[s] = Nobody
  /\ runs' = [runs EXCEPT ![a] = [id |-> n, store |-> s]] /\ budget' = [budget EXCEPT !.old = @ - 1]
  /\ UNCHANGED <<bound, there, header, live, address, listed>>
Stop(a) == runs[a] # Off /\ runs' = [runs EXCEPT ![a] = Off] /\ UNCHANGED <<bound, there, header, live, address, listed, budget>>
Enter(a) == /\ runs[a] # Off /\ address[runs[a].id] # a /\ address' = [address EXCEPT ![runs[a].id] = a]
            /\ UNCHANGED <<bound, there, header, live, runs, listed, budget>>
Write(b, a) ==
  /\ runs[a] # Off /\ address[runs[a].id] = a /\ header[b] = Nobody
  /\ header' = [header EXCEPT ![b] = runs[a].id] /\ live' = live \cup {b}
  /\ there' = [there EXCEPT ![runs[a].store] = @ \cup {b}]
  /\ UNCHANGED <<bound, address, runs, listed, budget>>
\* People move the files of a store into another one.
Move(s, t) ==
  /\ budget.move > 0 /\ s # t /\ there[s] # {} /\ there' = [there EXCEPT ![t] = @ \cup there[s], ![s] = {}]
  /\ budget' = [budget EXCEPT !.move = @ - 1] /\ UNCHANGED <<bound, header, live, address, runs, listed>>
List(a) ==
  /\ runs[a] # Off /\ address[runs[a].id] = a
  /\ \E b \in there[runs[a].store] : listed' = listed \cup {<<a, runs[a].id, b>>} /\ listed' # listed
  /\ UNCHANGED <<bound, there, header, live, address, runs, budget>>
\* An orphan is deleted by the agent that listed it, if it still says that it is that node, and the header does.
Sweep(l) ==
  LET a == l[1]  n == l[2]  b == l[3] IN
  /\ l \in listed /\ listed' = listed \ {l}
  /\ IF ~(b \in live /\ header[b] = n) /\ runs[a].id = n /\ (On("header") => header[b] = n)
     THEN there' = [there EXCEPT ![runs[a].store] = @ \ {b}] ELSE there' = there
  /\ UNCHANGED <<bound, header, live, address, runs, budget>>
Kill(b) == /\ b \in live /\ live' = live \ {b} /\ UNCHANGED <<bound, there, header, address, runs, listed, budget>>

Next ==
  \/ \E a \in Agents : Stop(a) \/ Enter(a) \/ List(a) \/ (\E n \in Nodes, s \in Stores : Start(a, n, s) \/ StartOld(a, n, s)) \/ \E b \in Blocks : Write(b, a)
  \/ \E s, t \in Stores : Move(s, t)
  \/ \E l \in listed : Sweep(l)
  \/ \E b \in Blocks : Kill(b)
Spec == Init /\ [][Next]_vars

NoLiveDelete == \A b \in live : \E s \in Stores : b \in there[s]
\* Nodes that fail together are not counted as two.
New(a) == runs[a] # Off /\ bound[runs[a].store] # Nobody /\ budget.old = Old
Independent == \A a, b \in Agents : New(a) /\ New(b) /\ runs[a].store = runs[b].store => runs[a].id = runs[b].id
\* After an upgrade what an agent finds bound is its own.
Idleness == ~(\E a \in Agents, b \in Blocks : runs[a] # Off /\ header[b] = runs[a].id /\ b \in there[runs[a].store] /\ b \notin live /\ \E c \in Blocks : header[c] # Nobody /\ \A s \in Stores : c \notin there[s])
=============================================================================
