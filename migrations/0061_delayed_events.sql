-- Events that users have sent later (MSC4140). A worker sends those that are due.

CREATE TABLE delayed_event (
  -- 128 random bits: who knows it may manage the event, without a token too.
  delay_id text COLLATE "C" PRIMARY KEY,
  user_nid bigint NOT NULL,
  -- Login and hash of path and transaction id of the request, so that a repeat schedules nothing. NULL where the request had none.
  txn_token bigint,
  txn_hash text COLLATE "C",
  room_id text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  -- NULL for a message event.
  state_key text COLLATE "C",
  -- JSON
  content text NOT NULL,
  -- The first thing in the content that canonical JSON forbids.
  offence text COLLATE "C",
  -- The time of the event that an application service asked for.
  ts bigint,
  -- Rate limits do not apply to its sender.
  is_unlimited boolean NOT NULL,
  delay_ms bigint NOT NULL,
  -- When it was scheduled or last restarted, and when it is due.
  scheduled_at bigint NOT NULL,
  due_at bigint NOT NULL,
  -- Once it is sent, cancelled or failed. JSON of the error.
  finalised_at bigint,
  event_id text COLLATE "C",
  error text
);
CREATE INDEX delayed_event_due ON delayed_event (due_at) WHERE finalised_at IS NULL;
CREATE INDEX delayed_event_scheduled ON delayed_event (user_nid, due_at) WHERE finalised_at IS NULL;
CREATE INDEX delayed_event_final ON delayed_event (user_nid, finalised_at) WHERE finalised_at IS NOT NULL;
CREATE INDEX delayed_event_age ON delayed_event (finalised_at) WHERE finalised_at IS NOT NULL;
CREATE UNIQUE INDEX delayed_event_txn ON delayed_event (txn_token, txn_hash) WHERE txn_token IS NOT NULL;
