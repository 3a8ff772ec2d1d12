------------------------------- MODULE Commit -------------------------------
(* The commit protocol, small enough to be explored exhaustively.

   The catalog is linearizable: each of its transactions is one step. Everything else is asynchronous: a block write, a
   block deletion and a commit request that were sent may take effect late, many times, or never. Gateways crash at any
   step and forget everything. No step reads a clock: an attempt may expire at ANY time, so what holds here holds however
   wrong the clocks are.

   A group has two data columns, slots 0 and 1, and m parity rows, slots 2 and 3. A scheme is the number 10k + m: 11 is
   rs(1,1), which is rep(2) with two stripes; 21 is rs(2,1); 22 is rs(2,2). Bytes are symbols: the value of a data block
   is the number of the write that made it, and a parity block remembers k and the two values that it was computed from.
   Reading a block whose content has rotted yields garbage, or, where checksums are looked at, a miss.

   Each rule can be switched off with Without; the configurations named without-* show what then goes wrong.          *)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
  Keys, Gateways, Nil,  \* model values
  Kinds,                \* operations that may be started, a subset of AllKinds
  Operations,           \* how many are started, by all gateways together
  Crashes, Losses, Rots, Slips, Repeats, Reads,  \* how often each may happen
  Start,                \* scheme of the group that there is in the beginning
  Ladder,               \* schemes that a transition may lead to
  Together,             \* the blocks of an attempt are written in one step, and the graveyard is emptied in one step
  Resend,               \* a block write may take effect again and again
  Scan,                 \* stores are searched for orphans
  Without               \* rules that are switched off
On(rule) == rule \notin Without

AllKinds == {"put", "append", "update", "delete", "transition", "repair", "move"}
ASSUME Kinds \subseteq AllKinds

VARIABLES
  next,      \* catalog: the next stamp
  object,    \* catalog: key -> Nil, or its revision, its group and its columns in it
  group,     \* catalog: group -> Nil, or generation, epoch, scheme, slots and number of live extents
  intent,    \* catalog: stamp -> state and announced addresses of an attempt; for deletes the row of the request
  graves,    \* catalog: addresses whose blocks are to be deleted
  blocks,    \* stores: what is stored, as <<group, slot, stamp, node, value>>
  rotten,    \* stores: addresses whose content is not what was written
  writes,    \* block writes under way
  deletes,   \* addresses whose deletion was sent; it may take effect at any time, for ever
  gateway,   \* gateway -> the attempt it is at
  requests,  \* commit requests under way
  answers,   \* stamp -> answer to its commit request, under way to the gateway
  sweeper, reader,
  budget,    \* what may still happen
  truth,     \* ghost: key -> value of each of its columns by the last committed write
  applied,   \* ghost: stamp -> how often its commit took effect
  told,      \* ghost: stamp -> what the client was told
  struck,    \* ghost: addresses of which a fault has taken the content
  fault      \* ghost: what went wrong that no state shows
catalog == <<next, object, group, intent, graves>>
stores  == <<blocks, rotten, writes, deletes>>
ghosts  == <<truth, applied, told, struck, fault>>
vars == <<catalog, stores, gateway, requests, answers, sweeper, reader, budget, ghosts>>

K(scheme) == scheme \div 10
M(scheme) == scheme % 10
Data == {0, 1}
Parity(scheme) == 2..(1 + M(scheme))
Slots(scheme) == 0..(1 + M(scheme))
AllSlots == 0..3
Spare == 4                        \* a node that no slot lies on in the beginning; slot x lies on node x
Stamps == 2..(Operations + 1)     \* stamp 1 made the group there is in the beginning
Groups == 1..(Operations + 1)     \* a group is named after the stamp that made it

(* ------------------------------------------------------------------ blocks and what can be decoded from them *)
Garbage == 99  Missing == 98  Unread == 97
ParityOf(k, a, b) == k * 10000 + a * 100 + b
KOf(p) == p \div 10000
Summand(p, column) == IF column = 0 THEN (p % 10000) \div 100 ELSE p % 100

Address(b) == <<b[1], b[2], b[3], b[4]>>
Stored(a) == \E b \in blocks : Address(b) = a
Readable(a) == Stored(a) /\ ~(On("checksum") /\ a \in rotten)
Content(a) == IF a \notin rotten THEN (CHOOSE b \in blocks : Address(b) = a)[5]
              ELSE IF a[2] \in Data THEN Garbage ELSE ParityOf(9, Garbage, Garbage)
AddressOf(g, record, slot) == <<g, slot, record.slots[slot].stamp, record.slots[slot].node>>
Addresses(g, record) == {AddressOf(g, record, slot) : slot \in Slots(record.scheme)}
Live == UNION {IF group[g] = Nil THEN {} ELSE Addresses(g, group[g]) : g \in Groups}
Announced == UNION {IF intent[s].state = "active" THEN intent[s].blocks ELSE {} : s \in Stamps}
Whole(g, record) == \A a \in Addresses(g, record) : Stored(a)
Sound(g, record) == \A a \in Addresses(g, record) : Readable(a)

\* Everything that a column may come out as, whichever k blocks of its stripe are used; got says what was read of each slot.
Decodings(scheme, got, column) ==
  LET parities == {p \in Parity(scheme) : got[p] < Unread \/ got[p] > Garbage}
      other == got[1 - column] IN
  IF got[column] # Missing THEN {got[column]}
  ELSE IF K(scheme) = 1 THEN {IF KOf(got[p]) = 1 THEN Summand(got[p], column) ELSE Garbage : p \in parities}
  ELSE (IF other = Missing THEN {} ELSE
         {IF KOf(got[p]) = 2 /\ Summand(got[p], 1 - column) = other THEN Summand(got[p], column) ELSE Garbage : p \in parities})
       \cup (IF Cardinality(parities) < 2 THEN {}
              ELSE {IF KOf(got[2]) = 2 /\ got[2] = got[3] THEN Summand(got[2], column) ELSE Garbage})
Now(g, record) == [slot \in AllSlots |->
  IF slot \in Slots(record.scheme) /\ Readable(AddressOf(g, record, slot)) THEN Content(AddressOf(g, record, slot)) ELSE Missing]
DecodingsNow(g, record, column) == Decodings(record.scheme, Now(g, record), column)

Idle == [at |-> "idle"]
Init ==
  /\ next = 2
  /\ object = [k \in Keys |-> [revision |-> 1, group |-> 1, columns |-> {IF k = CHOOSE q \in Keys : TRUE THEN 0 ELSE 1}]]
  /\ group = [g \in Groups |-> IF g # 1 THEN Nil ELSE
       [generation |-> 1, epoch |-> 1, scheme |-> Start, live |-> Cardinality(Keys),
        slots |-> [x \in AllSlots |-> [stamp |-> 1, node |-> x]]]]
  /\ intent = [s \in Stamps |-> [state |-> "none", blocks |-> {}]]
  /\ blocks = {<<1, x, 1, x, IF x \in Data THEN 11 + x ELSE ParityOf(K(Start), 11, 12)>> : x \in Slots(Start)}
  /\ rotten = {} /\ writes = {} /\ deletes = {} /\ graves = {} /\ struck = {}
  /\ gateway = [c \in Gateways |-> Idle] /\ requests = {} /\ answers = [s \in Stamps |-> "none"]
  /\ truth = [k \in Keys |-> [column \in object[k].columns |-> 11 + column]]
  /\ applied = [s \in Stamps |-> 0] /\ told = [s \in Stamps |-> "none"]
  /\ sweeper = Idle /\ reader = Idle /\ fault = "none"
  /\ budget = [crash |-> Crashes, loss |-> Losses, rot |-> Rots, slip |-> Slips, repeat |-> Repeats, read |-> Reads]

(* ------------------------------------------------------------------ announcing and staging: rules 1 to 5, 19 *)
\* One transaction draws a stamp, takes the records as they are and announces every block. Then the writes are sent.
\* A slip is one block computed wrongly, with a checksum that fits it.
Spoilt(b) == <<b[1], b[2], b[3], b[4], IF b[2] \in Data THEN Garbage ELSE ParityOf(9, Garbage, Garbage)>>
Begin(c, r) ==
  /\ next' = next + 1
  /\ intent' = IF r.kind = "delete" THEN intent
               ELSE [intent EXCEPT ![next] = [state |-> "active", blocks |-> IF On("announce") THEN {Address(b) : b \in r.new} ELSE {}]]
  /\ \E slip \in {{}} \cup (IF budget.slip > 0 THEN {{b} : b \in r.new} ELSE {}) :
       LET staged == (r.new \ slip) \cup {Spoilt(b) : b \in slip} IN
       /\ budget' = [budget EXCEPT !.slip = @ - Cardinality(slip)]
       /\ writes' = writes \cup staged
       /\ gateway' = [gateway EXCEPT ![c] = [at |-> "staging", r |-> [r EXCEPT !.new = staged], stored |-> {}]]
  /\ UNCHANGED <<object, group, graves, blocks, rotten, deletes, requests, answers, sweeper, reader, ghosts>>
Operation(kind, key, g, slots, to, new) ==
  [kind |-> kind, key |-> key, group |-> g, slots |-> slots, to |-> to, stamp |-> next, new |-> new, late |-> FALSE,
   object |-> IF key = Nil THEN Nil ELSE object[key], record |-> group[g]]
\* The stamp that the blocks of an attempt carry.
KeyStamp(g) == IF On("unique") THEN next ELSE 50 + group[g].epoch

NewGroup(scheme, a, b) ==
  {<<next, 0, next, 0, a>>, <<next, 1, next, 1, b>>} \cup {<<next, p, next, p, ParityOf(K(scheme), a, b)>> : p \in Parity(scheme)}
Put(c, k) == Begin(c, Operation("put", k, next, {}, Start, NewGroup(Start, next, next)))
\* Columns of a group get new bytes: new cells, and in each parity row the old parity with the change added.
NewCells(g, columns) ==
  LET record == group[g]
      row(p) == LET old == Content(AddressOf(g, record, p))
                    part(x) == IF x \in columns THEN next ELSE Summand(old, x) IN ParityOf(KOf(old), part(0), part(1)) IN
  {<<g, x, KeyStamp(g), record.slots[x].node, next>> : x \in columns}
  \cup {<<g, p, KeyStamp(g), record.slots[p].node, row(p)>> : p \in Parity(record.scheme)}
Update(c, k) ==
  /\ object[k] # Nil /\ group[object[k].group] # Nil /\ Sound(object[k].group, group[object[k].group])
  /\ LET g == object[k].group IN
     Begin(c, Operation("update", k, g, {}, group[g].scheme, NewCells(g, object[k].columns)))
Append(c, k, g, column) ==
  /\ group[g] # Nil /\ Sound(g, group[g])
  /\ \A q \in Keys : object[q] # Nil => ~(object[q].group = g /\ column \in object[q].columns)
  /\ Begin(c, Operation("append", k, g, {column}, group[g].scheme, NewCells(g, {column})))
\* With another k every parity row is computed anew, here from the first row; with the same k only rows that are added.
Transition(c, g, to) ==
  /\ group[g] # Nil /\ to # group[g].scheme
  /\ LET record == group[g]  first == AddressOf(g, record, 2)
         rows == IF K(to) = K(record.scheme) THEN Parity(to) \ Parity(record.scheme) ELSE Parity(to) IN
     /\ Readable(first)
     /\ LET p == Content(first) IN
        Begin(c, Operation("transition", Nil, g, {}, to,
          {<<g, x, KeyStamp(g), record.slots[x].node, ParityOf(K(to), Summand(p, 0), Summand(p, 1))>> : x \in rows}))
\* Blocks that are lost or rotten are rebuilt, each on its node or on the spare one.
Repair(c, g, slots, substitute) ==
  /\ group[g] # Nil /\ slots # {} /\ slots \subseteq Slots(group[g].scheme)
  /\ \A x \in slots : LET a == AddressOf(g, group[g], x) IN ~Stored(a) \/ a \in rotten
  /\ substitute # Nil => \A x \in Slots(group[g].scheme) : group[g].slots[x].node # Spare
  /\ LET record == group[g]
         got == [x \in AllSlots |-> IF x \in slots THEN Missing ELSE Now(g, record)[x]]
         values(column) == Decodings(record.scheme, got, column)
         node(x) == IF x = substitute THEN Spare ELSE record.slots[x].node
         stamp(x) == IF On("freshrepair") THEN next ELSE record.slots[x].stamp IN
     \E a \in values(0), b \in values(1) :
       Begin(c, Operation("repair", Nil, g, slots, record.scheme,
         {<<g, x, stamp(x), node(x), IF x = 0 THEN a ELSE IF x = 1 THEN b ELSE ParityOf(K(record.scheme), a, b)>> : x \in slots}))
\* The bytes of an object are copied into a group of their own.
Move(c, k) ==
  /\ object[k] # Nil /\ group[object[k].group] # Nil /\ Sound(object[k].group, group[object[k].group])
  /\ LET o == object[k]
         v(x) == IF x \in o.columns THEN Content(AddressOf(o.group, group[o.group], x)) ELSE 0 IN
     Begin(c, Operation("move", k, next, {}, Start, NewGroup(Start, v(0), v(1))))
Delete(c, k) == object[k] # Nil /\ Begin(c, Operation("delete", k, object[k].group, {}, Start, {}))

(* ------------------------------------------------------------------ the commit transaction: rule 6 *)
AsRead(r) == group[r.group] # Nil /\ IF On("gen") THEN group[r.group].generation = r.record.generation
                                                   ELSE group[r.group].epoch = r.record.epoch
NodesOf(record) == [x \in Slots(record.scheme) |-> record.slots[x].node]
EpochOf(r) == IF On("unique") THEN r.stamp ELSE 50 + r.record.epoch
NewRecord(r) ==
  LET fresh == [generation |-> r.stamp, epoch |-> r.stamp, scheme |-> Start, live |-> 0,
                slots |-> [x \in AllSlots |-> [stamp |-> r.stamp, node |-> x]]]
      \* its own fields only, or the record as it was read with them changed
      mine == IF On("fields") \/ r.kind = "append" THEN group[r.group] ELSE [group[r.group] EXCEPT !.live = r.record.live]
      base == IF On("gen") \/ r.kind = "repair" THEN mine ELSE [mine EXCEPT !.slots = r.record.slots]
      staged == [x \in AllSlots |-> IF \E b \in r.new : b[2] = x
                  THEN LET b == CHOOSE b \in r.new : b[2] = x IN [stamp |-> b[3], node |-> b[4]] ELSE base.slots[x]]
      added == [base EXCEPT !.slots = staged, !.generation = r.stamp, !.epoch = EpochOf(r)] IN
  CASE r.kind = "put" -> [fresh EXCEPT !.live = 2]
    [] r.kind = "move" -> [fresh EXCEPT !.live = Cardinality(r.object.columns)]
    [] r.kind = "update" -> added
    [] r.kind = "append" -> [added EXCEPT !.live = @ + 1]
    [] r.kind = "transition" -> [added EXCEPT !.scheme = r.to]
    [] r.kind = "repair" -> [base EXCEPT !.slots = staged, !.generation = r.stamp]
    [] OTHER -> Nil
Condition(r) ==
  /\ r.kind # "delete" /\ On("intent") => intent[r.stamp].state = "active"
  /\ r.kind = "delete" => object[r.key] # Nil /\ (On("request") => object[r.key] = r.object /\ intent[r.stamp].state = "none")
  /\ r.kind \in {"update", "move"} => object[r.key] # Nil /\ (On("object") => object[r.key] = r.object)
  /\ r.kind \in {"update", "transition"} => AsRead(r)
  /\ r.kind = "append" /\ On("append") => AsRead(r)
  /\ r.kind = "repair" => group[r.group] # Nil /\ IF On("gen") THEN AsRead(r) ELSE NodesOf(group[r.group]) = NodesOf(r.record)
  /\ On("whole") /\ r.kind # "delete" =>
       /\ \A b \in r.new : Stored(Address(b))
       /\ r.kind # "repair" /\ ~(r.kind = "append" /\ group[r.group] = Nil) => Whole(r.group, NewRecord(r))
\* The extents that are dropped: as found in the transaction, or as read when the operation began.
Dropped(r) == IF r.kind \in {"put", "delete", "append", "move"} THEN (IF On("found") THEN object[r.key] ELSE r.object) ELSE Nil
Less(a, b) == IF a > b THEN a - b ELSE 0
Drop(groups, o) == IF o = Nil \/ groups[o.group] = Nil THEN groups ELSE [groups EXCEPT ![o.group].live = Less(@, Cardinality(o.columns))]
NewTruth(r) ==
  LET columns == CASE r.kind = "put" -> Data [] r.kind = "append" -> r.slots [] OTHER -> r.object.columns IN
  CASE r.kind \in {"put", "append", "update"} -> [truth EXCEPT ![r.key] = [x \in columns |-> r.stamp]]
    [] r.kind = "delete" -> [truth EXCEPT ![r.key] = Nil]
    [] OTHER -> truth
Superseded(r) == IF r.kind \in {"update", "append", "transition", "repair"} /\ group[r.group] # Nil
                 THEN Addresses(r.group, group[r.group]) \ Addresses(r.group, NewRecord(r)) ELSE {}
Apply(r) ==
  LET dropped == Dropped(r)
      gone == group[r.group] = Nil /\ r.kind = "append"
      made == IF r.kind = "delete" \/ gone THEN Nil ELSE NewRecord(r)
      own == dropped # Nil /\ made # Nil /\ dropped.group = r.group IN
  /\ group' = LET groups == Drop(group, dropped) IN
              IF r.kind = "delete" THEN groups
              ELSE [groups EXCEPT ![r.group] = IF own THEN [made EXCEPT !.live = Less(@, Cardinality(dropped.columns))] ELSE made]
  /\ object' = CASE r.kind = "put" -> [object EXCEPT ![r.key] = [revision |-> r.stamp, group |-> r.group, columns |-> Data]]
                 [] r.kind = "append" -> [object EXCEPT ![r.key] = [revision |-> r.stamp, group |-> r.group, columns |-> r.slots]]
                 [] r.kind = "update" -> [object EXCEPT ![r.key].revision = IF On("bump") THEN r.stamp ELSE @]
                 [] r.kind = "move" -> [object EXCEPT ![r.key] = [revision |-> object[r.key].revision, group |-> r.group, columns |-> r.object.columns]]
                 [] r.kind = "delete" -> [object EXCEPT ![r.key] = Nil]
                 [] OTHER -> object
  /\ intent' = IF r.kind = "delete" /\ ~On("request") THEN intent
               ELSE [intent EXCEPT ![r.stamp].state = IF On("settle") THEN "committed" ELSE "forgotten"]
  /\ graves' = IF On("graves") THEN graves \cup Superseded(r) ELSE graves
  /\ truth' = NewTruth(r)
  /\ reader' = IF r.key # Nil /\ reader.at # "idle" /\ reader.key = r.key
               THEN [reader EXCEPT !.legal = @ \cup {NewTruth(r)[r.key]}] ELSE reader
  /\ applied' = [applied EXCEPT ![r.stamp] = @ + 1]
  /\ fault' = IF \/ r.kind \notin {"delete", "repair"} /\ made # Nil /\ ~Whole(r.group, made)
                 \/ r.kind = "repair" /\ \E b \in r.new : ~Stored(Address(b))
              THEN "a commit names a block that is not stored" ELSE fault
\* A request may take effect again. A repeated delete answers nobody: that is the contract of the catalog's engines.
Answer(r, word) ==
  answers' = IF (\E c \in Gateways : gateway[c].at = "asking" /\ gateway[c].r.stamp = r.stamp) /\ ~(On("answer") /\ r.late /\ r.kind = "delete")
             THEN [answers EXCEPT ![r.stamp] = word] ELSE answers
Process(r) ==
  /\ \/ Condition(r) /\ Apply(r) /\ Answer(r, "yes")
     \/ ~Condition(r) /\ Answer(r, "no") /\ UNCHANGED <<group, object, intent, graves, truth, reader, applied, fault>>
  /\ \/ requests' = requests \ {r} /\ budget' = budget
     \/ budget.repeat > 0 /\ budget' = [budget EXCEPT !.repeat = @ - 1] /\ requests' = (requests \ {r}) \cup {[r EXCEPT !.late = TRUE]}
  /\ UNCHANGED <<next, stores, gateway, sweeper, told, struck>>

(* ------------------------------------------------------------------ the gateway: rules 4, 5, 8, 9 *)
Tell(c, word) == told' = [told EXCEPT ![gateway[c].r.stamp] = word]
Become(c, what) == gateway' = [gateway EXCEPT ![c] = what]
\* Every write was acknowledged and the fingerprints satisfy every parity equation: the commit is asked for. What lowers
\* the number of blocks that may be lost reads the blocks it keeps, for some of them may be rotten.
Verified(r) ==
  /\ On("verify") => \A b \in r.new : b # Spoilt(b)
  /\ On("deep") /\ r.kind = "transition" /\ M(r.to) < M(r.record.scheme) =>
       \A x \in Slots(r.to) : (~\E b \in r.new : b[2] = x) => Readable(AddressOf(r.group, r.record, x))
Ask(c) == /\ gateway[c].at = "staging" /\ gateway[c].stored = gateway[c].r.new /\ Verified(gateway[c].r)
          /\ requests' = requests \cup {gateway[c].r} /\ Become(c, [gateway[c] EXCEPT !.at = "asking"])
          /\ UNCHANGED <<catalog, stores, answers, sweeper, reader, budget, ghosts>>
Yes(c) == /\ gateway[c].at = "asking" /\ answers[gateway[c].r.stamp] = "yes" /\ Tell(c, "done")
          /\ Become(c, IF On("graves") THEN Idle ELSE [at |-> "cleaning", r |-> gateway[c].r])
          /\ answers' = [answers EXCEPT ![gateway[c].r.stamp] = "none"]
          /\ UNCHANGED <<catalog, stores, requests, sweeper, reader, budget, truth, applied, struck, fault>>
\* Without a graveyard the gateway deletes from memory what it superseded.
Clean(c) == /\ gateway[c].at = "cleaning"
            /\ LET r == gateway[c].r IN
               deletes' = deletes \cup (IF r.kind \in {"update", "append", "transition", "repair"}
                 THEN {AddressOf(r.group, r.record, b[2]) : b \in {b \in r.new : b[2] \in Slots(r.record.scheme)}} \ {Address(b) : b \in r.new} ELSE {})
            /\ Become(c, Idle)
            /\ UNCHANGED <<catalog, blocks, rotten, writes, requests, answers, sweeper, reader, budget, ghosts>>
\* Anything but a yes (a no, a time-out, a wish to cancel) is settled by a transaction before anything is believed.
Settle(c) ==
  /\ gateway[c].at \in {"staging", "asking"} /\ gateway[c].r.kind # "delete" /\ On("settle")
  /\ LET s == gateway[c].r.stamp  active == intent[s].state = "active" IN
     /\ Tell(c, CASE intent[s].state \in {"active", "aborted"} -> "failed" [] intent[s].state = "committed" -> "done" [] OTHER -> "unknown")
     /\ intent' = IF active THEN [intent EXCEPT ![s].state = "aborted"] ELSE intent
     /\ graves' = IF active /\ On("graves") THEN graves \cup intent[s].blocks ELSE graves
     /\ deletes' = IF active /\ ~On("graves") THEN deletes \cup intent[s].blocks ELSE deletes
     /\ answers' = [answers EXCEPT ![s] = "none"]
     \* a request that comes later finds the intent not active: it is dropped here, which saves states
     /\ requests' = IF On("intent") THEN {q \in requests : q.stamp # s} ELSE requests
  /\ Become(c, Idle)
  /\ UNCHANGED <<next, object, group, blocks, rotten, writes, sweeper, reader, budget, truth, applied, struck, fault>>
\* Without it the gateway looks whether the effect shows, and otherwise cancels by deleting what it staged.
Guess(c) ==
  /\ gateway[c].at = "asking" /\ gateway[c].r.kind # "delete" /\ ~On("settle")
  /\ LET r == gateway[c].r
         seen == IF r.key # Nil THEN object[r.key] # Nil /\ object[r.key].revision = r.stamp
                                ELSE group[r.group] # Nil /\ group[r.group].generation = r.stamp IN
     /\ Tell(c, IF seen THEN "done" ELSE "failed")
     /\ deletes' = IF seen THEN deletes ELSE deletes \cup {Address(b) : b \in r.new}
  /\ Become(c, Idle)
  /\ UNCHANGED <<catalog, blocks, rotten, writes, requests, answers, sweeper, reader, budget, truth, applied, struck, fault>>
\* A delete is settled by the row of its request: there, it says how it ended; absent, one is put there that says "never".
\* A clear no means that the object is another one now: the delete is tried again with what is there.
SettleDelete(c) ==
  /\ gateway[c].at = "asking" /\ gateway[c].r.kind = "delete"
  /\ LET r == gateway[c].r IN
     IF ~On("request")
     THEN requests' = requests \cup {r} /\ UNCHANGED <<gateway, intent, answers, told>>
     ELSE \/ /\ Tell(c, IF intent[r.stamp].state = "committed" THEN "done" ELSE "failed")
             /\ intent' = IF intent[r.stamp].state = "none" THEN [intent EXCEPT ![r.stamp].state = "aborted"] ELSE intent
             /\ answers' = [answers EXCEPT ![r.stamp] = "none"]
             /\ Become(c, Idle) /\ requests' = requests
          \/ /\ answers[r.stamp] = "no" /\ answers' = [answers EXCEPT ![r.stamp] = "none"] /\ intent' = intent
             /\ IF object[r.key] = Nil THEN Tell(c, "absent") /\ Become(c, Idle) /\ requests' = requests
                ELSE LET again == [r EXCEPT !.object = object[r.key], !.late = FALSE] IN
                     told' = told /\ requests' = requests \cup {again} /\ Become(c, [gateway[c] EXCEPT !.r = again])
  /\ UNCHANGED <<next, object, group, graves, stores, sweeper, reader, budget, truth, applied, struck, fault>>
Crash(c) == /\ gateway[c].at # "idle" /\ budget.crash > 0 /\ budget' = [budget EXCEPT !.crash = @ - 1]
            /\ Become(c, Idle)
            /\ UNCHANGED <<catalog, stores, requests, answers, sweeper, reader, ghosts>>

(* ------------------------------------------------------------------ network and stores *)
WriteLands(b) ==
  LET some == IF Together THEN {q \in writes : q[1] = b[1] /\ q[3] = b[3]} ELSE {b}
      places == {Address(q) : q \in some} IN
  /\ ~(some \subseteq blocks)
  /\ blocks' = {q \in blocks : Address(q) \notin places} \cup some
  /\ rotten' = rotten \ places
  /\ writes' = IF Resend THEN writes ELSE writes \ some
  /\ gateway' = [c \in Gateways |-> IF gateway[c].at = "staging"
                  THEN [gateway[c] EXCEPT !.stored = @ \cup (some \cap gateway[c].r.new)] ELSE gateway[c]]
  /\ UNCHANGED <<catalog, deletes, requests, answers, sweeper, reader, budget, ghosts>>
DeleteLands(a) == /\ Stored(a) /\ blocks' = {q \in blocks : Address(q) # a} /\ rotten' = rotten \ {a}
                  /\ UNCHANGED <<catalog, writes, deletes, gateway, requests, answers, sweeper, reader, budget, ghosts>>
\* Faults never take more than m slots of a group. Between the verification and the commit of a transition that lowers m
\* they never take more than the new m: the catalog cannot know what nobody has noticed yet.
Bearable(there) ==
  \A g \in Groups : group[g] # Nil =>
    LET lost == Cardinality({a \in Addresses(g, group[g]) : a \notin there}) IN
    /\ lost <= M(group[g].scheme)
    /\ \A r \in requests : r.kind = "transition" /\ r.group = g => lost <= M(r.to)
Intact == {Address(b) : b \in blocks} \ rotten
Loss(n) == LET left == {b \in blocks : b[4] # n} IN
           /\ budget.loss > 0 /\ left # blocks /\ Bearable({a \in Intact : a[4] # n})
           /\ budget' = [budget EXCEPT !.loss = @ - 1]
           /\ struck' = struck \cup {Address(b) : b \in blocks \ left} /\ blocks' = left /\ rotten' = {a \in rotten : a[4] # n}
           /\ UNCHANGED <<catalog, writes, deletes, gateway, requests, answers, sweeper, reader, truth, applied, told, fault>>
Rot(a) == /\ budget.rot > 0 /\ a \in Intact \cap Live /\ Bearable(Intact \ {a})
          /\ budget' = [budget EXCEPT !.rot = @ - 1] /\ rotten' = rotten \cup {a} /\ struck' = struck \cup {a}
          /\ UNCHANGED <<catalog, blocks, writes, deletes, gateway, requests, answers, sweeper, reader, truth, applied, told, fault>>

(* ------------------------------------------------------------------ cleaning: rules 10 to 13 *)
Expire(s) == /\ intent[s].state = "active"
             /\ intent' = [intent EXCEPT ![s].state = IF On("settle") THEN "aborted" ELSE "forgotten"]
             /\ graves' = IF On("graves") THEN graves \cup intent[s].blocks ELSE graves
             /\ deletes' = IF On("graves") THEN deletes ELSE deletes \cup intent[s].blocks
             /\ UNCHANGED <<next, object, group, blocks, rotten, writes, gateway, requests, answers, sweeper, reader, budget, ghosts>>
\* How an attempt ended is forgotten; that of a delete only when its client is gone.
Forget(s) == /\ intent[s].state \in {"committed", "aborted"}
             /\ ~\E r \in requests : r.stamp = s /\ r.kind = "delete"
             /\ ~\E c \in Gateways : gateway[c].at = "asking" /\ gateway[c].r.stamp = s /\ gateway[c].r.kind = "delete"
             /\ intent' = [intent EXCEPT ![s] = [state |-> "forgotten", blocks |-> {}]]
             /\ UNCHANGED <<next, object, group, graves, stores, gateway, requests, answers, sweeper, reader, budget, ghosts>>
Bury(a) == LET some == IF Together THEN graves ELSE {a} IN
           /\ graves' = graves \ some /\ deletes' = deletes \cup some
           /\ blocks' = {q \in blocks : Address(q) \notin some} /\ rotten' = rotten \ some
           /\ UNCHANGED <<next, object, group, intent, writes, gateway, requests, answers, sweeper, reader, budget, ghosts>>
FreeGroup(g) == /\ group' = [group EXCEPT ![g] = Nil]
                /\ graves' = IF On("graves") THEN graves \cup Addresses(g, group[g]) ELSE graves
                /\ deletes' = IF On("graves") THEN deletes ELSE deletes \cup Addresses(g, group[g])
                /\ UNCHANGED <<next, object, intent, blocks, rotten, writes, gateway, requests, answers, reader, budget, ghosts>>
Free(g) == /\ group[g] # Nil /\ On("free") /\ group[g].live = 0 /\ FreeGroup(g) /\ sweeper' = sweeper
LookThenFree(g) ==
  /\ ~On("free") /\ group[g] # Nil
  /\ \/ sweeper.at = "idle" /\ group[g].live = 0 /\ sweeper' = [at |-> "free", g |-> g]
        /\ UNCHANGED <<catalog, stores, gateway, requests, answers, reader, budget, ghosts>>
     \/ sweeper.at = "free" /\ sweeper.g = g /\ FreeGroup(g) /\ sweeper' = Idle
List == /\ Scan /\ sweeper.at = "idle"
        /\ IF On("listfirst") THEN \E b \in blocks : sweeper' = [at |-> "listed", a |-> Address(b)]
                              ELSE sweeper' = [at |-> "read", keep |-> Live \cup Announced]
        /\ UNCHANGED <<catalog, stores, gateway, requests, answers, reader, budget, ghosts>>
Judge ==
  /\ \/ /\ sweeper.at = "listed"
        /\ LET a == sweeper.a  g == a[1]
               dead == IF On("exact") THEN a \notin Live \cup Announced
                       ELSE (group[g] = Nil \/ a[3] # group[g].epoch) /\ a \notin Announced IN
           deletes' = IF dead THEN deletes \cup {a} ELSE deletes
     \/ sweeper.at = "read" /\ \E b \in blocks : Address(b) \notin sweeper.keep /\ deletes' = deletes \cup {Address(b)}
  /\ sweeper' = Idle
  /\ UNCHANGED <<catalog, blocks, rotten, writes, gateway, requests, answers, reader, budget, ghosts>>

(* ------------------------------------------------------------------ a reader: rules 14 to 16 *)
Open(k, at, legal) ==
  /\ reader.at = "idle" /\ budget.read > 0 /\ object[k] # Nil /\ group[object[k].group] # Nil
  /\ reader' = [at |-> at, key |-> k, o |-> object[k], record |-> group[object[k].group],
                got |-> [x \in AllSlots |-> Unread], degraded |-> FALSE, legal |-> legal]
  /\ budget' = [budget EXCEPT !.read = @ - 1]
  /\ UNCHANGED <<catalog, stores, gateway, requests, answers, sweeper, ghosts>>
ReadBegins(k) == On("snapshot") /\ Open(k, "reading", {truth[k]})
\* Without a snapshot inside the call: the records were cached before it began.
Cache(k) == ~On("snapshot") /\ Open(k, "cached", {})
UseCache == /\ reader.at = "cached" /\ reader' = [reader EXCEPT !.at = "reading", !.legal = {truth[reader.key]}]
            /\ UNCHANGED <<catalog, stores, gateway, requests, answers, sweeper, budget, ghosts>>
Wanted == reader.o.columns \cup (IF reader.degraded THEN Slots(reader.record.scheme) ELSE {})
Fetch(x) == /\ reader.at = "reading" /\ x \in Wanted /\ reader.got[x] = Unread
            /\ LET record == IF On("onerecord") \/ group[reader.o.group] = Nil THEN reader.record ELSE group[reader.o.group]
                   a == AddressOf(reader.o.group, record, x) IN
               reader' = [reader EXCEPT !.got[x] = IF Readable(a) THEN Content(a) ELSE Missing]
            /\ UNCHANGED <<catalog, stores, gateway, requests, answers, sweeper, budget, ghosts>>
Missed == {x \in AllSlots : reader.got[x] = Missing}
Complete == reader.at = "reading" /\ \A x \in Wanted : reader.got[x] # Unread
Results(x) == Decodings(reader.record.scheme, [y \in AllSlots |-> IF reader.got[y] = Unread THEN Missing ELSE reader.got[y]], x)
Decodable == \A x \in reader.o.columns : Results(x) # {}
\* A miss is judged by reading the catalog again. The same records: the block is lost. Others under the same revision: only
\* data whose address is unchanged is kept. Another revision: the read starts over, or its stream is broken off.
Refresh ==
  /\ Complete /\ Missed # {} /\ ~(reader.degraded /\ Decodable)
  /\ LET o == object[reader.key]
         record == IF o = Nil THEN Nil ELSE group[o.group]
         same == o = reader.o /\ record = reader.record
         kept(x) == IF o.revision # reader.o.revision THEN TRUE  \* it was sent already; reached without "stream" only
                    ELSE ~On("nomix") \/ (x \in Data /\ AddressOf(o.group, record, x) = AddressOf(reader.o.group, reader.record, x)) IN
     /\ reader' = IF same THEN IF reader.degraded THEN Idle ELSE [reader EXCEPT !.degraded = TRUE]
                  ELSE IF o # Nil /\ record # Nil /\ (o.revision = reader.o.revision \/ (~On("stream") /\ o.columns = reader.o.columns))
                  THEN [reader EXCEPT !.o = o, !.record = record, !.degraded = FALSE,
                          !.got = [x \in AllSlots |-> IF reader.got[x] = Missing \/ ~kept(x) THEN Unread ELSE reader.got[x]]]
                  ELSE Idle
     /\ fault' = IF same /\ reader.degraded THEN "a reader reports the loss of data" ELSE fault
  /\ UNCHANGED <<catalog, stores, gateway, requests, answers, sweeper, budget, truth, applied, told, struck>>
Return == /\ Complete /\ (Missed = {} \/ (reader.degraded /\ Decodable))
          /\ fault' = IF \A value \in [reader.o.columns -> UNION {Results(x) : x \in reader.o.columns}] :
                           (\A x \in reader.o.columns : value[x] \in Results(x)) => value \in reader.legal
                      THEN fault ELSE "a reader returned a stale, torn or mixed value"
          /\ reader' = Idle
          /\ UNCHANGED <<catalog, stores, gateway, requests, answers, sweeper, budget, truth, applied, told, struck>>

CanBegin(c) == gateway[c].at = "idle" /\ next <= Operations + 1
Does(kind) == kind \in Kinds
Next ==
  \/ \E c \in Gateways :
       \/ /\ CanBegin(c)
          /\ \/ Does("put") /\ \E k \in Keys : Put(c, k)
             \/ Does("append") /\ \E k \in Keys, g \in Groups, x \in Data : Append(c, k, g, x)
             \/ Does("update") /\ \E k \in Keys : Update(c, k)
             \/ Does("delete") /\ \E k \in Keys : Delete(c, k)
             \/ Does("move") /\ \E k \in Keys : Move(c, k)
             \/ Does("transition") /\ \E g \in Groups, to \in Ladder : Transition(c, g, to)
             \/ Does("repair") /\ \E g \in Groups, slots \in SUBSET AllSlots : \E substitute \in slots \cup {Nil} : Repair(c, g, slots, substitute)
       \/ Ask(c) \/ Yes(c) \/ Clean(c) \/ Settle(c) \/ Guess(c) \/ SettleDelete(c) \/ Crash(c)
  \/ \E r \in requests : Process(r)
  \/ \E b \in writes : WriteLands(b)
  \/ \E a \in deletes : DeleteLands(a)
  \/ budget.loss > 0 /\ \E n \in 0..Spare : Loss(n)
  \/ budget.rot > 0 /\ \E a \in Intact : Rot(a)
  \/ \E s \in Stamps : Expire(s) \/ Forget(s)
  \/ \E a \in graves : Bury(a)
  \/ \E g \in Groups : Free(g) \/ LookThenFree(g)
  \/ List \/ Judge
  \/ budget.read > 0 /\ \E k \in Keys : ReadBegins(k) \/ Cache(k)
  \/ reader.at # "idle" /\ (UseCache \/ Refresh \/ Return \/ \E x \in AllSlots : Fetch(x))
Spec == Init /\ [][Next]_vars

(* ------------------------------------------------------------------ invariants *)
\* What the last committed write gave a key can be decoded now, from whichever k blocks that its records name.
Durable == \A k \in Keys :
  /\ (object[k] = Nil) <=> (truth[k] = Nil)
  /\ object[k] # Nil => /\ group[object[k].group] # Nil
                        /\ \A x \in object[k].columns : DecodingsNow(object[k].group, group[object[k].group], x) = {truth[k][x]}
\* Every slot of every group is stored unless a fault took it, and parity is parity of the data under the group's scheme.
Coded == \A g \in Groups : group[g] # Nil =>
  LET record == group[g]  at(x) == AddressOf(g, record, x) IN
  /\ \A x \in Slots(record.scheme) : Stored(at(x)) \/ at(x) \in struck
  /\ \A p \in Parity(record.scheme) : Stored(at(p)) /\ at(p) \notin rotten =>
       /\ KOf(Content(at(p))) = K(record.scheme)
       /\ \A x \in Data : Stored(at(x)) /\ at(x) \notin rotten => Summand(Content(at(p)), x) = Content(at(x))
NoLiveDelete == (deletes \cup graves) \cap Live = {}
\* What is stored is live, announced, condemned, or a late write after its deletion, which the orphan scan is for.
NoLeak == \A b \in blocks : Address(b) \in Live \cup Announced \cup graves \cup deletes
LiveCount == \A g \in Groups : group[g] # Nil =>
  group[g].live = Cardinality({<<k, x>> \in Keys \X Data : object[k] # Nil /\ object[k].group = g /\ x \in object[k].columns})
\* An attempt takes effect at most once, and one whose client was told that it failed never does.
Once == \A s \in Stamps : applied[s] <= 1 /\ (told[s] \in {"failed", "absent"} => applied[s] = 0)
ReadOK == fault # "a reader returned a stale, torn or mixed value"
NoFault == fault = "none"
\* To be violated: every operation can succeed, so that the invariants do not hold for want of anything to break them.
Idleness == ~(\A s \in Stamps : told[s] = "done")
Symmetry == Permutations(Gateways)
=============================================================================
