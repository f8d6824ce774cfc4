-- All that a user has said is redacted: what operators asked for, and how far it is.

CREATE TABLE user_redaction (
  redaction_id text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL,
  -- JSON: what was asked for, and by whom.
  request text NOT NULL,
  -- The rooms to go through; NULL until they are looked up. Those before `room_index` are done.
  rooms bigint[],
  room_index integer NOT NULL DEFAULT 0,
  -- The position in the timeline of the current room below which it goes on; NULL: from the end.
  below_pos bigint,
  -- Events of the current room that were looked at.
  in_room integer NOT NULL DEFAULT 0,
  redacted integer NOT NULL DEFAULT 0,
  withdrawn integer NOT NULL DEFAULT 0,
  -- JSON: why events could not be redacted, by event id.
  failed text NOT NULL DEFAULT '{}',
  error text,
  asked_at bigint NOT NULL,
  ended_at bigint
);
CREATE INDEX user_redaction_open ON user_redaction (asked_at) WHERE ended_at IS NULL;
CREATE INDEX user_redaction_ended ON user_redaction (ended_at) WHERE ended_at IS NOT NULL;
