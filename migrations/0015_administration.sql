-- What operators do: the record of it, their short-lived tokens, and rooms that are being removed or are not to be joined.

-- One row per act, written before it is done.
CREATE TABLE admin_act (
  act_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  -- A user id, `command line` or `shared secret`.
  actor text COLLATE "C" NOT NULL,
  -- The operation: method and path as declared, or a verb of the command line.
  act text NOT NULL,
  -- Whom or what it was done to. Of a registration token its first letters only.
  target text COLLATE "C" NOT NULL,
  -- `begun`, then `done` or an error code. What stays `begun` was cut off.
  outcome text NOT NULL
);

-- Tokens of the command line, which has proven itself by reaching this table.
CREATE TABLE operator_token (
  token_hash bytea PRIMARY KEY,
  expires_at bigint NOT NULL
);

-- Nonces of registration by shared secret, used and not yet expired.
CREATE TABLE spent_nonce (
  nonce text COLLATE "C" PRIMARY KEY,
  expires_at bigint NOT NULL
);
CREATE INDEX spent_nonce_age ON spent_nonce (expires_at);

-- Rooms that users of this server may not join.
CREATE TABLE blocked_room (
  room_id text COLLATE "C" PRIMARY KEY,
  blocked_by text COLLATE "C" NOT NULL,
  blocked_at bigint NOT NULL
);

-- Rooms whose users are put out, and that are then removed. A row stays for a while after its end, for who asks how it went.
CREATE TABLE room_deletion (
  deletion_id text COLLATE "C" PRIMARY KEY,
  room_id text COLLATE "C" NOT NULL,
  room_nid bigint NOT NULL,
  -- JSON: what was asked for.
  request text NOT NULL,
  -- scheduled, active, complete, failed
  status text COLLATE "C" NOT NULL,
  error text,
  -- The room in place of the removed one.
  new_room_id text COLLATE "C",
  -- Users of this server that were in the room or invited when it was closed; those from `moved` on are still to be put out.
  members text[] COLLATE "C",
  moved integer NOT NULL DEFAULT 0,
  -- Rows of the room that are gone.
  removed bigint NOT NULL DEFAULT 0,
  failed text[] COLLATE "C" NOT NULL DEFAULT '{}',
  aliases text[] COLLATE "C" NOT NULL DEFAULT '{}',
  asked_at bigint NOT NULL,
  ended_at bigint
);
CREATE UNIQUE INDEX room_deletion_open ON room_deletion (room_id) WHERE ended_at IS NULL;
CREATE INDEX room_deletion_room ON room_deletion (room_id);

-- The room through which the server speaks to a user.
CREATE TABLE server_notice_room (
  user_nid bigint PRIMARY KEY REFERENCES account,
  room_nid bigint NOT NULL
);
