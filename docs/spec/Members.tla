------------------------------ MODULE Members ------------------------------
(* Nodes that lose their contents, go away, are declared out and rebuilt elsewhere, come back with what they had, and are
   removed. What Commit takes for granted, that a commit knows whether its blocks are there, is here as it really is: the
   catalog knows an incarnation of each store's contents, and an agent vouches for a block under one.

   One group of two copies, slots 0 and 1, each on a node of its own; it survives one loss. The value of a block is the
   number of the write whose bytes it holds. States of members (up, suspect, down, draining, out) only guide what is tried;
   no rule depends on them, so here everything may be tried at any time: a node that is "out" is one whose slots somebody
   rebuilds, be it right about that or not. Only a removal is a matter of rules.                                       *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS
  Nil, Nodes, Gateways,
  Kinds,       \* operations that may be started, a subset of {"write", "repair", "relocate"}
  Operations,  \* how many are started
  Losses,      \* how often a store loses its contents
  Departures,  \* how often a node goes away; it comes back at any time
  Removals,    \* how often a node is removed; it may come back too
  Substitutes, \* how often an attempt changes its mind about a node
  Scan,        \* stores are searched for orphans
  Without      \* rules that are switched off
On(rule) == rule \notin Without

VARIABLES
  next, record, intent, graves,  \* catalog: next stamp, group record, attempts, addresses of dead blocks
  member,     \* catalog: node -> "in", "leaving", "out of the cluster"
  known,      \* catalog: node -> incarnation that is registered; 0 none
  marker,     \* node -> incarnation of what its store holds; 0: the marker is gone with everything else
  highest,    \* node -> how many incarnations it had
  serving,    \* node -> incarnation its agent vouches under; 0: it serves nothing
  blocks,     \* what is stored, as <<node, slot, stamp, value>>
  away,       \* nodes that cannot be reached
  writes, deletes,
  greeting,   \* gateway -> a node it is about to register
  registrations,  \* requests to register, under way: <<node, was, now>>
  gateway, sweeper, budget,
  truth, gone, fault  \* ghosts: committed value; addresses lost after they were vouched for; what went wrong
catalog == <<next, record, intent, graves, member, known>>
stores == <<marker, highest, serving, blocks, away>>
network == <<writes, deletes, registrations>>
vars == <<catalog, stores, network, greeting, gateway, sweeper, budget, truth, gone, fault>>

Slots == {0, 1}
Stamps == 2..(Operations + 1)
Address(b) == <<b[1], b[2], b[3]>>
AddressOf(r, slot) == <<r.slots[slot].node, slot, r.slots[slot].stamp>>
Live == {AddressOf(record, slot) : slot \in Slots}
Announced == UNION {IF intent[s].state = "active" THEN intent[s].blocks ELSE {} : s \in Stamps}
Stored(a) == \E b \in blocks : Address(b) = a
ValueOf(a) == (CHOOSE b \in blocks : Address(b) = a)[4]
Idle == [at |-> "idle"]
Init ==
  /\ next = 2 /\ graves = {} /\ intent = [s \in Stamps |-> [state |-> "none", blocks |-> {}]]
  /\ record = [generation |-> 1, slots |-> [slot \in Slots |-> [stamp |-> 1, node |-> slot + 1, inc |-> 1]]]
  /\ member = [n \in Nodes |-> "in"] /\ known = [n \in Nodes |-> 1] /\ marker = [n \in Nodes |-> 1]
  /\ highest = [n \in Nodes |-> 1] /\ serving = [n \in Nodes |-> 1] /\ away = {}
  /\ blocks = {<<slot + 1, slot, 1, 1>> : slot \in Slots}
  /\ writes = {} /\ deletes = {} /\ registrations = {}
  /\ greeting = [c \in Gateways |-> Idle] /\ gateway = [c \in Gateways |-> Idle] /\ sweeper = Idle
  /\ budget = [loss |-> Losses, away |-> Departures, removal |-> Removals, substitute |-> Substitutes]
  /\ truth = 1 /\ gone = {} /\ fault = "none"

(* ------------------------------------------------------------------ attempts *)
\* receipts: what agents vouched for, as <<address, incarnation>>; taken: what was read of a marker before a write, likewise.
Begin(c, kind, new) ==
  /\ gateway[c].at = "idle" /\ next <= Operations + 1 /\ next' = next + 1
  /\ intent' = [intent EXCEPT ![next] = [state |-> "active", blocks |-> {Address(b) : b \in new}]]
  /\ writes' = writes \cup new
  /\ gateway' = [gateway EXCEPT ![c] = [at |-> "staging", kind |-> kind, stamp |-> next, new |-> new, record |-> record,
                                        taken |-> {}, receipts |-> {}]]
  /\ UNCHANGED <<record, graves, member, known, stores, deletes, registrations, greeting, sweeper, budget, truth, gone, fault>>
Write(c, a, b) == /\ a # b /\ Begin(c, "write", {<<a, 0, next, next>>, <<b, 1, next, next>>})
\* A slot is rebuilt from the other one, on any node that the other is not on: its block is gone, or somebody thinks so.
Repair(c, slot, n) ==
  LET other == AddressOf(record, 1 - slot) IN
  /\ n # other[1] /\ other[1] \notin away /\ Stored(other)
  /\ Begin(c, "repair", {<<n, slot, next, ValueOf(other)>>})
\* A slot is copied to another node, which needs no other slot.
Relocate(c, slot, n) ==
  LET own == AddressOf(record, slot) IN
  /\ n \notin {own[1], AddressOf(record, 1 - slot)[1]} /\ own[1] \notin away /\ Stored(own)
  /\ Begin(c, "relocate", {<<n, slot, next, ValueOf(own)>>})
\* A node does not answer: its block goes to another one, which is announced before.
Substitute(c, b, n) ==
  LET r == gateway[c]  instead == <<n, b[2], b[3], b[4]>> IN
  /\ r.at = "staging" /\ budget.substitute > 0 /\ ~\E receipt \in r.receipts : receipt[1] = Address(b)
  /\ \A q \in r.new : q[1] # n
  /\ (r.kind # "write" => n # AddressOf(r.record, 1 - b[2])[1])
  /\ budget' = [budget EXCEPT !.substitute = @ - 1]
  /\ (On("extend") => intent[r.stamp].state = "active")
  /\ intent' = IF On("extend") THEN [intent EXCEPT ![r.stamp].blocks = @ \cup {Address(instead)}] ELSE intent
  /\ writes' = writes \cup {instead}
  /\ gateway' = [gateway EXCEPT ![c].new = (@ \ {b}) \cup {instead}]
  /\ UNCHANGED <<next, record, graves, member, known, stores, deletes, registrations, greeting, sweeper, truth, gone, fault>>
\* An agent writes a block under the incarnation it serves, if the marker says so, and vouches for it if it still does after.
Land(b) ==
  /\ b \in writes /\ b[1] \notin away /\ serving[b[1]] # 0 /\ (On("marker") => serving[b[1]] = marker[b[1]])
  /\ writes' = writes \ {b} /\ blocks' = blocks \cup {b}
  /\ gateway' = [c \in Gateways |-> IF gateway[c].at = "staging" /\ b \in gateway[c].new
       THEN [gateway[c] EXCEPT !.taken = @ \cup {<<Address(b), serving[b[1]]>>}] ELSE gateway[c]]
  /\ UNCHANGED <<catalog, marker, highest, serving, away, deletes, registrations, greeting, sweeper, budget, truth, gone, fault>>
Receipt(c, taken) ==
  LET n == taken[1][1] IN
  /\ gateway[c].at = "staging" /\ taken \in gateway[c].taken /\ n \notin away
  /\ (On("marker") => marker[n] = taken[2])
  /\ gateway' = [gateway EXCEPT ![c].taken = @ \ {taken}, ![c].receipts = @ \cup {taken}]
  /\ UNCHANGED <<catalog, stores, network, greeting, sweeper, budget, truth, gone, fault>>
\* The commit: one transaction, rule 6.
Vouched(r) == {receipt[1] : receipt \in r.receipts}
Result(r) ==
  LET base == IF On("gen") THEN record ELSE [record EXCEPT !.slots = r.record.slots] IN
  [base EXCEPT !.generation = r.stamp,
     !.slots = [slot \in Slots |-> IF \E b \in r.new : b[2] = slot
       THEN LET b == CHOOSE b \in r.new : b[2] = slot
                receipt == CHOOSE q \in r.receipts : q[1] = Address(b) IN [stamp |-> b[3], node |-> b[1], inc |-> receipt[2]]
       ELSE base.slots[slot]]]
Commit(c) ==
  LET r == gateway[c]  made == Result(r) IN
  /\ r.at = "staging" /\ Vouched(r) = {Address(b) : b \in r.new}
  /\ intent[r.stamp].state = "active"
  /\ (r.kind # "write" /\ On("gen") => record.generation = r.record.generation)
  /\ (On("whole") => \A receipt \in r.receipts : known[receipt[1][1]] = receipt[2])
  /\ record' = made /\ truth' = IF r.kind = "write" THEN r.stamp ELSE truth
  /\ intent' = [intent EXCEPT ![r.stamp].state = "committed"]
  /\ graves' = graves \cup ((Live \cup intent[r.stamp].blocks) \ {AddressOf(made, slot) : slot \in Slots})
  /\ fault' = IF \A b \in r.new : Stored(Address(b)) \/ (Address(b) \in gone /\ \E q \in r.receipts : q = <<Address(b), known[b[1]]>>)
              THEN fault ELSE "a commit names a block that was not there, or that the catalog knew to be lost"
  /\ gateway' = [gateway EXCEPT ![c] = Idle]
  /\ UNCHANGED <<next, member, known, stores, network, greeting, sweeper, budget, gone>>
Settle(s) ==
  /\ intent[s].state = "active"
  /\ intent' = [intent EXCEPT ![s].state = "aborted"] /\ graves' = graves \cup intent[s].blocks
  /\ gateway' = [c \in Gateways |-> IF gateway[c].at # "idle" /\ gateway[c].stamp = s THEN Idle ELSE gateway[c]]
  /\ UNCHANGED <<next, record, member, known, stores, network, greeting, sweeper, budget, truth, gone, fault>>

(* ------------------------------------------------------------------ contents and incarnations: rule 17 *)
\* At most one slot of the group is lost at a time, those counted that an attempt will make live.
Lost(a, left) == ~\E b \in left : Address(b) = a
Bearable(left) ==
  /\ Cardinality({a \in Live : Lost(a, left)}) <= 1
  /\ \A c \in Gateways : gateway[c].at = "staging" =>
       LET r == gateway[c]
           kept == IF r.kind = "write" THEN {} ELSE {AddressOf(record, 1 - slot) : slot \in {b[2] : b \in r.new}} IN
       Cardinality({a \in kept \cup Vouched(r) : Lost(a, left)}) <= 1
Empty(n) ==
  LET left == {b \in blocks : b[1] # n} IN
  /\ budget.loss > 0 /\ marker[n] # 0 /\ Bearable(left)
  /\ budget' = [budget EXCEPT !.loss = @ - 1]
  /\ marker' = [marker EXCEPT ![n] = 0] /\ blocks' = left
  /\ gone' = gone \cup ({Address(b) : b \in blocks \ left} \cap (Live \cup UNION {IF gateway[c].at = "idle" THEN {} ELSE Vouched(gateway[c]) : c \in Gateways}))
  /\ UNCHANGED <<catalog, highest, serving, away, network, greeting, gateway, sweeper, truth, fault>>
\* The agent looks for the marker, finds none and makes a new one. It serves nothing until the catalog knows it.
Notice(n) ==
  /\ marker[n] = 0 /\ highest' = [highest EXCEPT ![n] = @ + 1] /\ marker' = [marker EXCEPT ![n] = highest[n] + 1]
  /\ serving' = [serving EXCEPT ![n] = 0]
  /\ UNCHANGED <<catalog, blocks, away, network, greeting, gateway, sweeper, budget, truth, gone, fault>>
\* A gateway reads what the catalog knows of a node, and only then asks the agent.
Look(c, n) ==
  /\ greeting[c].at = "idle" /\ known[n] # marker[n]
  /\ greeting' = [greeting EXCEPT ![c] = IF On("readfirst") THEN [at |-> "read", node |-> n, was |-> known[n]]
                                         ELSE [at |-> "read", node |-> n, now |-> marker[n]]]
  /\ (~On("readfirst") => marker[n] # 0 /\ n \notin away)
  /\ UNCHANGED <<catalog, stores, network, gateway, sweeper, budget, truth, gone, fault>>
Hello(c) ==
  LET g == greeting[c] IN
  /\ g.at = "read" /\ (On("readfirst") => marker[g.node] # 0 /\ g.node \notin away)
  /\ registrations' = registrations \cup {<<g.node, IF On("readfirst") THEN g.was ELSE known[g.node],
                                                    IF On("readfirst") THEN marker[g.node] ELSE g.now>>}
  /\ greeting' = [greeting EXCEPT ![c] = Idle]
  /\ UNCHANGED <<catalog, stores, writes, deletes, gateway, sweeper, budget, truth, gone, fault>>
Register(request) ==
  LET n == request[1] IN
  /\ request \in registrations /\ registrations' = registrations \ {request}
  /\ LET takes == (On("refuse") => member[n] = "in") /\ (On("compare") => known[n] = request[2]) IN
     /\ known' = IF takes THEN [known EXCEPT ![n] = request[3]] ELSE known
     /\ fault' = IF takes /\ request[3] < known[n] THEN "the catalog is told of contents that are no more" ELSE fault
  /\ UNCHANGED <<next, record, intent, graves, member, stores, writes, deletes, greeting, gateway, sweeper, budget, truth, gone>>
Attach(n) ==
  /\ n \notin away /\ marker[n] # 0 /\ serving[n] # marker[n] /\ known[n] = marker[n]
  /\ serving' = [serving EXCEPT ![n] = marker[n]]
  /\ UNCHANGED <<catalog, marker, highest, blocks, away, network, greeting, gateway, sweeper, budget, truth, gone, fault>>

(* ------------------------------------------------------------------ going away, coming back, removal *)
Leave(n) == /\ budget.away > 0 /\ n \notin away /\ away' = away \cup {n} /\ budget' = [budget EXCEPT !.away = @ - 1]
            /\ UNCHANGED <<catalog, marker, highest, serving, blocks, network, greeting, gateway, sweeper, truth, gone, fault>>
Return(n) == /\ n \in away /\ away' = away \ {n}
             /\ UNCHANGED <<catalog, marker, highest, serving, blocks, network, greeting, gateway, sweeper, budget, truth, gone, fault>>
\* A node is removed: first it is fenced, so that nothing more can be committed onto it nor its contents registered; then it
\* is seen that nothing is on it.
Fence(n) ==
  /\ budget.removal > 0 /\ member[n] = "in" /\ budget' = [budget EXCEPT !.removal = @ - 1]
  /\ IF On("fence") THEN /\ member' = [member EXCEPT ![n] = "leaving"] /\ known' = [known EXCEPT ![n] = 0]
                    ELSE /\ \A slot \in Slots : record.slots[slot].node # n  \* looks first
                         /\ member' = [member EXCEPT ![n] = "leaving"] /\ known' = known
  /\ UNCHANGED <<next, record, intent, graves, stores, network, greeting, gateway, sweeper, truth, gone, fault>>
Remove(n) ==
  /\ member[n] = "leaving"
  /\ (On("fence") => \A slot \in Slots : record.slots[slot].node # n)
  /\ member' = [member EXCEPT ![n] = "out of the cluster"] /\ known' = [known EXCEPT ![n] = 0]
  /\ UNCHANGED <<next, record, intent, graves, stores, network, greeting, gateway, sweeper, budget, truth, gone, fault>>
\* It is entered again, or the removal is called off.
Enter(n) ==
  /\ member[n] # "in" /\ member' = [member EXCEPT ![n] = "in"]
  /\ UNCHANGED <<next, record, intent, graves, known, stores, network, greeting, gateway, sweeper, budget, truth, gone, fault>>

(* ------------------------------------------------------------------ cleaning *)
Bury(a) == /\ a[1] \notin away /\ graves' = graves \ {a} /\ deletes' = deletes \cup {a}
           /\ blocks' = {b \in blocks : Address(b) # a}
           /\ UNCHANGED <<next, record, intent, member, known, marker, highest, serving, away, writes, registrations, greeting, gateway, sweeper, budget, truth, gone, fault>>
List == /\ Scan /\ sweeper.at = "idle"
        /\ \E b \in blocks : b[1] \notin away /\ sweeper' = [at |-> "listed", a |-> Address(b)]
        /\ UNCHANGED <<catalog, stores, network, greeting, gateway, budget, truth, gone, fault>>
\* By address; or, without that rule, by whether the record says that this node has this slot.
IsDead(a) == IF On("exact") THEN a \notin Live \cup Announced
             ELSE ~\E slot \in Slots : slot = a[2] /\ record.slots[slot].node = a[1]
Judge == /\ sweeper.at = "listed" /\ sweeper' = Idle
         /\ deletes' = IF IsDead(sweeper.a) THEN deletes \cup {sweeper.a} ELSE deletes
         /\ UNCHANGED <<catalog, stores, writes, registrations, greeting, gateway, budget, truth, gone, fault>>
DeleteLands(a) == /\ a[1] \notin away /\ Stored(a) /\ blocks' = {b \in blocks : Address(b) # a}
                  /\ UNCHANGED <<catalog, marker, highest, serving, away, network, greeting, gateway, sweeper, budget, truth, gone, fault>>
\* A read asks for a block by its whole address; without that rule for "the block of this slot", as the node has it.
Read(slot) ==
  LET n == record.slots[slot].node
      found == IF On("address") THEN {b \in blocks : Address(b) = AddressOf(record, slot)} ELSE {b \in blocks : b[1] = n /\ b[2] = slot} IN
  /\ n \notin away /\ \E b \in found : b[4] # truth
  /\ fault' = "a reader was given bytes of another version"
  /\ UNCHANGED <<catalog, stores, network, greeting, gateway, sweeper, budget, truth, gone>>

Next ==
  \/ \E c \in Gateways :
       \/ "write" \in Kinds /\ \E a, b \in Nodes : Write(c, a, b)
       \/ "repair" \in Kinds /\ \E slot \in Slots, n \in Nodes : Repair(c, slot, n)
       \/ "relocate" \in Kinds /\ \E slot \in Slots, n \in Nodes : Relocate(c, slot, n)
       \/ gateway[c].at = "staging" /\ (\/ Commit(c)
                                        \/ \E taken \in gateway[c].taken : Receipt(c, taken)
                                        \/ budget.substitute > 0 /\ \E b \in gateway[c].new, n \in Nodes : Substitute(c, b, n))
       \/ \E n \in Nodes : Look(c, n)
       \/ Hello(c)
  \/ \E s \in Stamps : Settle(s)
  \/ \E b \in writes : Land(b)
  \/ \E n \in Nodes : Empty(n) \/ Notice(n) \/ Attach(n) \/ Leave(n) \/ Return(n) \/ Fence(n) \/ Remove(n) \/ Enter(n)
  \/ \E request \in registrations : Register(request)
  \/ \E a \in graves : Bury(a)
  \/ \E a \in deletes : DeleteLands(a)
  \/ List \/ Judge
  \/ \E slot \in Slots : Read(slot)
Spec == Init /\ [][Next]_vars

(* ------------------------------------------------------------------ invariants *)
Durable == \E slot \in Slots : Stored(AddressOf(record, slot)) /\ ValueOf(AddressOf(record, slot)) = truth
OneValue == \A slot \in Slots : Stored(AddressOf(record, slot)) => ValueOf(AddressOf(record, slot)) = truth
Apart == record.slots[0].node # record.slots[1].node
NoLiveDelete == (deletes \cup graves) \cap Live = {}
NoLeak == \A b \in blocks : Address(b) \in Live \cup Announced \cup graves \cup deletes
\* A node that was removed has no slot.
Inside == \A slot \in Slots : member[record.slots[slot].node] # "out of the cluster"
NoFault == fault = "none"
Symmetry == Permutations(Gateways)
=============================================================================
