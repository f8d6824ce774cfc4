-- The state log with chains that branch off others: read from one index, and collected chain by chain.

-- A branch is always numbered higher than what it branches off. `parent_chain` -1: nothing refers to the chain any more, and what
-- is left of it is being removed.
ALTER TABLE state_chain ADD CONSTRAINT state_chain_order CHECK (parent_chain < chain);
CREATE INDEX state_chain_parent ON state_chain (room_nid, parent_chain);
CREATE INDEX state_chain_given_up ON state_chain (room_nid) WHERE parent_chain = -1;
CREATE INDEX event_state_chain ON event (room_nid, state_chain) WHERE state_chain > 0;
CREATE INDEX event_current_chain ON event (room_nid, current_chain) WHERE current_chain > 0;

-- The log is the largest of a room's tables after its events, so its rows and entries are kept short: four bytes number two thousand
-- million rooms. A stretch of it is read from the index alone, since where rooms lie mixed its rows are far apart.
DROP INDEX state_change_key;
ALTER TABLE state_change DROP CONSTRAINT state_change_pkey;
ALTER TABLE state_change ALTER COLUMN room_nid TYPE integer;
ALTER TABLE state_change ADD PRIMARY KEY (room_nid, chain, seq) INCLUDE (key_id, event_nid);
CREATE INDEX state_change_key ON state_change (room_nid, key_id, chain, seq);
ALTER TABLE state_key ALTER COLUMN room_nid TYPE integer;
ALTER TABLE state_chain ALTER COLUMN room_nid TYPE integer;
ALTER TABLE state_checkpoint ALTER COLUMN room_nid TYPE integer;

-- All keys of a room are read at once and looked up in memory.
DROP INDEX state_key_name;

-- `entries` is from now on: one byte that says how many bytes a value takes, then the event_nids of all keys from 0 on, big-endian,
-- 0 for a key without one. Those in the earlier form are made again when they are due.
DELETE FROM state_checkpoint;
