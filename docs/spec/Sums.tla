-------------------------------- MODULE Sums --------------------------------
(* A sum that an agent gathers for a block (rule 4): a parity node adds products of the data nodes, a node that rebuilds
   its block adds partial sums of the survivors. Contributions come as messages, in pieces, which may be lost, repeated
   and late; those of an attempt that was given up come too. An agent keeps what it gathers in memory alone: a restart
   loses it, and the senders, who have no acknowledgement, send again. Pieces of a block leave while it is being read; the
   last one only when its checksum was right.

   Adding is symmetric difference: what is added twice is gone. A sum is right when it holds every contribution of its
   own attempt once and nothing else.                                                                                *)
EXTENDS Naturals, FiniteSets
CONSTANTS
  Sources, Pieces, Attempts,
  Rotten,     \* sources whose block is not what was written
  Messages,   \* how many are sent at most, repetitions included
  Restarts,   \* how often the agent may restart
  Without     \* rules that are switched off
On(rule) == rule \notin Without

VARIABLES
  open,     \* attempts whose sum is being gathered
  sum,      \* attempt -> piece -> contributions added, as <<attempt, source, whether it is right>>
  counted,  \* attempt -> <<source, piece>> that were counted
  count,    \* attempt -> how many were counted
  stored,   \* attempt -> "no", or how the block is that was stored
  sent, restarts
vars == <<open, sum, counted, count, stored, sent, restarts>>

Nothing == [p \in Pieces |-> {}]
Init == /\ open = {} /\ sent = 0 /\ restarts = 0
        /\ sum = [a \in Attempts |-> Nothing] /\ counted = [a \in Attempts |-> {}] /\ count = [a \in Attempts |-> 0]
        /\ stored = [a \in Attempts |-> "no"]

Open(a) == /\ a \notin open /\ stored[a] = "no" /\ open' = open \cup {a}
           /\ UNCHANGED <<sum, counted, count, stored, sent, restarts>>
Add(set, x) == (set \ {x}) \cup ({x} \ set)
\* A message of attempt a comes in and is added to the sum of attempt b: its own, where runs are told apart by attempts.
Arrive(a, source, piece) ==
  /\ sent < Messages /\ sent' = sent + 1
  /\ (On("last") /\ source \in Rotten => \E later \in Pieces : later > piece)
  /\ \E b \in open :
       /\ On("attempt") => b = a
       /\ IF On("once") /\ <<source, piece>> \in counted[b] THEN UNCHANGED <<sum, counted, count>>
          ELSE /\ sum' = [sum EXCEPT ![b][piece] = Add(@, <<a, source, source \notin Rotten>>)]
               /\ counted' = [counted EXCEPT ![b] = @ \cup {<<source, piece>>}]
               /\ count' = [count EXCEPT ![b] = @ + 1]
  /\ UNCHANGED <<open, stored, restarts>>
Right(a) == \A p \in Pieces : sum[a][p] = {<<a, s, TRUE>> : s \in Sources}
\* The block is stored and acknowledged when everything was counted.
Store(a) == /\ a \in open
            /\ count[a] = (IF On("everything") THEN Cardinality(Sources) * Cardinality(Pieces) ELSE Cardinality(Sources))
            /\ stored' = [stored EXCEPT ![a] = IF Right(a) THEN "right" ELSE "wrong"] /\ open' = open \ {a}
            /\ UNCHANGED <<sum, counted, count, sent, restarts>>
\* What was gathered is void, and with it what was counted.
Restart == /\ restarts < Restarts /\ restarts' = restarts + 1
           /\ sum' = [a \in Attempts |-> Nothing]
           /\ IF On("void") THEN /\ open' = {} /\ counted' = [a \in Attempts |-> {}] /\ count' = [a \in Attempts |-> 0]
                            ELSE UNCHANGED <<open, counted, count>>
           /\ UNCHANGED <<stored, sent>>
GiveUp(a) == /\ a \in open /\ open' = open \ {a}
             /\ sum' = [sum EXCEPT ![a] = Nothing] /\ counted' = [counted EXCEPT ![a] = {}] /\ count' = [count EXCEPT ![a] = 0]
             /\ UNCHANGED <<stored, sent, restarts>>
Next == \/ \E a \in Attempts : Open(a) \/ Store(a) \/ GiveUp(a)
        \/ \E a \in Attempts, s \in Sources, p \in Pieces : Arrive(a, s, p)
        \/ Restart
Spec == Init /\ [][Next]_vars

Exact == \A a \in Attempts : stored[a] # "wrong"
\* To be violated: sums are completed at all.
Idleness == \A a \in Attempts : stored[a] # "right"
=============================================================================
