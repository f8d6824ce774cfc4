-- Users, the accounts of this server, their devices and tokens, and what they keep on the server.

-- Every user ever seen, of this server or another. Other tables name a user by user_nid.
CREATE TABLE matrix_user (
  user_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL UNIQUE
);

-- One row per account of this server.
CREATE TABLE account (
  user_nid bigint PRIMARY KEY REFERENCES matrix_user,
  -- PHC string; none for guests, deactivated accounts and those of application services.
  password_hash text,
  is_guest boolean NOT NULL DEFAULT false,
  is_admin boolean NOT NULL DEFAULT false,
  created_at bigint NOT NULL,
  deactivated_at bigint
);

CREATE TABLE device (
  user_nid bigint NOT NULL REFERENCES account,
  device_id text COLLATE "C" NOT NULL,
  display_name text,
  created_at bigint NOT NULL,
  last_seen_at bigint,
  last_seen_ip text,
  last_seen_user_agent text,
  PRIMARY KEY (user_nid, device_id)
);

-- One live token per device. token_nid is never used again, so it can stand for one login elsewhere.
CREATE TABLE access_token (
  token_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- SHA-256 of the token; the token itself is kept nowhere.
  token_hash bytea NOT NULL UNIQUE,
  user_nid bigint NOT NULL,
  device_id text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  UNIQUE (user_nid, device_id),
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);

CREATE TABLE registration_token (
  token text COLLATE "C" PRIMARY KEY,
  -- NULL: any number of times.
  uses_allowed integer,
  uses integer NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  expires_at bigint
);

-- User-interactive authentication under way. Holds no password: only what each completed stage established.
CREATE TABLE uia_session (
  session_id text COLLATE "C" PRIMARY KEY,
  -- Method and path, and the user where there is one: a session counts for nothing else.
  operation text NOT NULL,
  -- Hash of the request's body without `auth`, fixed when the first stage is tried.
  body_hash bytea,
  -- JSON: stage to what it established, in the order of completion.
  completed text NOT NULL,
  created_at bigint NOT NULL
);
CREATE INDEX uia_session_age ON uia_session (created_at);

CREATE TABLE profile_field (
  user_nid bigint NOT NULL REFERENCES matrix_user,
  name text COLLATE "C" NOT NULL,
  -- JSON
  value text NOT NULL,
  PRIMARY KEY (user_nid, name)
);

CREATE TABLE account_data (
  user_nid bigint NOT NULL REFERENCES matrix_user,
  -- '' for the account's own
  room_id text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  -- JSON
  content text NOT NULL,
  -- Position in the ledger.
  position bigint NOT NULL,
  PRIMARY KEY (user_nid, room_id, type)
);
CREATE INDEX account_data_position ON account_data (user_nid, position);

-- Filters are stored once per user and definition.
CREATE TABLE sync_filter (
  filter_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_nid bigint NOT NULL REFERENCES matrix_user,
  -- SHA-256 of the definition.
  digest bytea NOT NULL,
  -- JSON
  definition text NOT NULL,
  UNIQUE (user_nid, digest)
);
