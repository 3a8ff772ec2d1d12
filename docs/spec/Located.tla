------------------------------- MODULE Located -------------------------------
(* A small object's record says where its bytes lay when it was written: on which node, in the block of which attempt. A
   reader that has read the record, and nothing else, reads there at any time later, while the object is put and updated,
   its block is moved by repairs, relocations and compaction that leave the record as it is, blocks are deleted, and
   writes of attempts that were given up still land. What it finds is the object under the revision that the record has,
   or nothing, after which the record of its group says where to read.

   A block is named by its node and the stamp of its attempt. Contents are named by the revision that they are of.     *)
EXTENDS Naturals, FiniteSets
CONSTANTS
  Nodes,
  Stamps,   \* how many are drawn at most
  Without   \* rules that are switched off
On(rule) == rule \notin Without

VARIABLES
  object,  \* the record: revision, and where it says that it lies
  lies,    \* where the record of its group says that it lies
  blocks,  \* address -> revision that the block there has the bytes of, or Nothing
  graves,  \* addresses that may be deleted
  late,    \* writes under way of attempts that were given up: address -> what they write
  drawn,   \* how many stamps were drawn
  reader   \* "idle", or the record that was read, and what was found
vars == <<object, lies, blocks, graves, late, drawn, reader>>

Nothing == 0  Idle == [at |-> <<>>, revision |-> 0, found |-> Nothing]
Addresses == Nodes \X (1..Stamps)
\* The stamp of a new attempt: one of its own, or one that was drawn before.
Draw(s) == IF On("unique") THEN s = drawn + 1 /\ s <= Stamps ELSE s \in 1..Stamps
Drawn(s) == drawn' = IF s > drawn THEN s ELSE drawn

Init == \E n \in Nodes :
  /\ object = [revision |-> 1, at |-> <<n, 1>>] /\ lies = <<n, 1>> /\ graves = {} /\ drawn = 1 /\ reader = Idle
  /\ blocks = [a \in Addresses |-> IF a = <<n, 1>> THEN 1 ELSE Nothing] /\ late = [a \in Addresses |-> Nothing]

\* A put or an update: other bytes, in a block of its own, and a record that says where. Revisions are stamps.
Put(n, s) == /\ Draw(s) /\ s # object.revision /\ Drawn(s)
             /\ object' = [revision |-> s, at |-> IF On("record") THEN <<n, s>> ELSE object.at] /\ lies' = <<n, s>>
             /\ blocks' = [blocks EXCEPT ![<<n, s>>] = s] /\ graves' = (graves \cup {lies}) \ {<<n, s>>}
             /\ UNCHANGED <<late, reader>>
\* The same bytes in another block: the record of the object stays.
Rebuild(n, s) == /\ Draw(s) /\ Drawn(s) /\ <<n, s>> # lies
                 /\ lies' = <<n, s>> /\ blocks' = [blocks EXCEPT ![<<n, s>>] = object.revision]
                 /\ graves' = (graves \cup {lies}) \ {<<n, s>>}
                 /\ UNCHANGED <<object, late, reader>>
Delete(a) == /\ a \in graves /\ blocks' = [blocks EXCEPT ![a] = Nothing] /\ graves' = graves \ {a}
             /\ UNCHANGED <<object, lies, late, drawn, reader>>
\* An attempt is given up whose write is under way: of other bytes, named by its stamp.
GiveUp(n, s) == /\ Draw(s) /\ Drawn(s) /\ <<n, s>> # lies /\ late' = [late EXCEPT ![<<n, s>>] = s]
                /\ UNCHANGED <<object, lies, blocks, graves, reader>>
Land(a) == /\ late[a] # Nothing /\ blocks' = [blocks EXCEPT ![a] = late[a]] /\ late' = [late EXCEPT ![a] = Nothing]
           /\ graves' = (graves \cup {a}) \ {lies}
           /\ UNCHANGED <<object, lies, drawn, reader>>
Look == /\ reader.at = <<>> /\ reader' = [at |-> object.at, revision |-> object.revision, found |-> Nothing]
        /\ UNCHANGED <<object, lies, blocks, graves, late, drawn>>
\* With the object's checksum other bytes are as good as none.
Read == /\ reader.at # <<>> /\ reader.found = Nothing
        /\ LET there == blocks[reader.at] IN
             reader' = [reader EXCEPT !.found = IF On("checksum") /\ there # reader.revision THEN Nothing ELSE there]
        /\ UNCHANGED <<object, lies, blocks, graves, late, drawn>>
Next == \/ \E n \in Nodes, s \in 1..Stamps : Put(n, s) \/ Rebuild(n, s) \/ GiveUp(n, s)
        \/ \E a \in Addresses : Delete(a) \/ Land(a)
        \/ Look \/ Read
Spec == Init /\ [][Next]_vars

Exact == reader.found \in {Nothing, reader.revision}
\* To be violated: what was moved is found no more where it lay; and what is there is found.
Idleness == reader.found = Nothing
Stays == reader.at # <<>> => blocks[reader.at] # Nothing
=============================================================================
