-- Rooms: events as immutable bytes, a head row per room that every write advances by compare-and-set,
-- and room state as a log of changes with packed checkpoints.
--
-- Integer ids inside: room_nid, event_nid, user_nid, and key_id, the room-local name of a (type, state_key) pair.
-- An event_nid is also the event's position in the stream of its writer: writer w owns the numbers from w * 2^48 on.

CREATE TABLE room (
  room_nid bigint PRIMARY KEY,
  room_id text COLLATE "C" NOT NULL UNIQUE,
  room_version text NOT NULL,
  -- Advanced by each write that names the version it read; a cache of the room is valid exactly while this stands.
  head_version bigint NOT NULL,
  -- The event_nids that no event of ours refers to yet.
  extremities bigint[] NOT NULL,
  depth bigint NOT NULL,
  -- room_pos and event_nid of the newest event.
  last_pos bigint NOT NULL,
  last_nid bigint NOT NULL,
  -- How many events so far count towards unread counts.
  notifiable bigint NOT NULL,
  state_chain integer NOT NULL,
  state_seq integer NOT NULL
) WITH (fillfactor = 70);

CREATE SEQUENCE room_nid_seq;

CREATE TABLE event (
  event_nid bigint PRIMARY KEY,
  room_nid bigint NOT NULL,
  -- The order of this room's timeline: new events count up from 1, history fetched later counts down from 0.
  room_pos bigint NOT NULL,
  sender_nid bigint NOT NULL,
  origin_server_ts bigint NOT NULL,
  -- The room's count of notifiable events, this one included.
  notifiable bigint NOT NULL,
  -- The event that this state event takes the place of.
  replaces_nid bigint,
  -- The redaction that was applied to these bytes.
  redacted_by bigint,
  -- The access token that sent it, so that its client alone is told the transaction id.
  txn_token bigint,
  -- State before this event: that of `state_chain` after its change number `state_seq`.
  state_chain integer NOT NULL,
  state_seq integer NOT NULL,
  -- Set for state events.
  key_id integer,
  event_id text COLLATE "C" NOT NULL UNIQUE,
  type text COLLATE "C" NOT NULL,
  txn_id text,
  -- Canonical JSON of the event as federated, without `unsigned`.
  json text NOT NULL
);
CREATE INDEX event_timeline ON event (room_nid, room_pos);

CREATE TABLE state_key (
  room_nid bigint NOT NULL,
  key_id integer NOT NULL,
  type text COLLATE "C" NOT NULL,
  state_key text COLLATE "C" NOT NULL,
  PRIMARY KEY (room_nid, key_id)
);
CREATE UNIQUE INDEX state_key_name ON state_key (room_nid, type, state_key);

-- Change number `seq` of a chain sets `key_id` to `event_nid` (0 removes it). Numbers start at 1.
CREATE TABLE state_change (
  room_nid bigint NOT NULL,
  chain integer NOT NULL,
  seq integer NOT NULL,
  key_id integer NOT NULL,
  event_nid bigint NOT NULL,
  PRIMARY KEY (room_nid, chain, seq)
);
CREATE INDEX state_change_key ON state_change (room_nid, key_id, chain, seq DESC) INCLUDE (event_nid);

-- Where a chain branches off: it continues `parent_chain` after its change `parent_seq`. Chain 0 has no row.
CREATE TABLE state_chain (
  room_nid bigint NOT NULL,
  chain integer NOT NULL,
  parent_chain integer NOT NULL,
  parent_seq integer NOT NULL,
  PRIMARY KEY (room_nid, chain)
);

-- The whole state after a change: 12 bytes a key, key_id as uint32 and event_nid as uint64.
CREATE TABLE state_checkpoint (
  room_nid bigint NOT NULL,
  chain integer NOT NULL,
  seq integer NOT NULL,
  entries bytea NOT NULL,
  PRIMARY KEY (room_nid, chain, seq)
);
ALTER TABLE state_checkpoint ALTER COLUMN entries SET STORAGE EXTERNAL;

-- Current membership of every user ever in a room.
CREATE TABLE room_member (
  user_nid bigint NOT NULL,
  room_nid bigint NOT NULL,
  membership text COLLATE "C" NOT NULL,
  event_nid bigint NOT NULL,
  -- The user asked for the room to be forgotten after leaving it.
  forgotten boolean NOT NULL DEFAULT false,
  PRIMARY KEY (user_nid, room_nid)
);
CREATE INDEX room_member_room ON room_member (room_nid, membership);

-- One row per PUT with a transaction id, for as long as a client may repeat it.
CREATE TABLE client_txn (
  token_nid bigint NOT NULL,
  -- Hash of the path with its transaction id.
  txn_hash text COLLATE "C" NOT NULL,
  event_nid bigint NOT NULL,
  created_ts bigint NOT NULL,
  PRIMARY KEY (token_nid, txn_hash)
);

CREATE INDEX client_txn_age ON client_txn USING brin (created_ts);

-- Events that stand out to one user: mentions.
CREATE TABLE highlight (
  user_nid bigint NOT NULL,
  room_nid bigint NOT NULL,
  event_nid bigint NOT NULL,
  PRIMARY KEY (user_nid, room_nid, event_nid)
);

CREATE TABLE receipt (
  room_nid bigint NOT NULL,
  user_nid bigint NOT NULL,
  -- m.read, m.read.private
  kind text COLLATE "C" NOT NULL,
  -- '' for an unthreaded receipt, else the thread's root or main
  thread_id text COLLATE "C" NOT NULL,
  event_nid bigint NOT NULL,
  ts bigint NOT NULL,
  -- Position in the ledger.
  position bigint NOT NULL,
  PRIMARY KEY (room_nid, user_nid, kind, thread_id)
);
CREATE INDEX receipt_position ON receipt (position);

CREATE TABLE room_alias (
  alias text COLLATE "C" PRIMARY KEY,
  room_nid bigint NOT NULL,
  creator_nid bigint NOT NULL,
  created_ts bigint NOT NULL
);
CREATE INDEX room_alias_room ON room_alias (room_nid);

-- Rooms listed in the public directory of this server.
CREATE TABLE published_room (
  room_nid bigint PRIMARY KEY,
  published_ts bigint NOT NULL
);

CREATE TABLE ledger (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  position bigint NOT NULL
);
INSERT INTO ledger (position) VALUES (0);
