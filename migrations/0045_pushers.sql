-- Pushers: where a user wants to be told of what they have not read. A pusher ends with the session that set it.

CREATE TABLE pusher (
  pusher_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_nid bigint NOT NULL REFERENCES account,
  app_id text COLLATE "C" NOT NULL,
  pushkey text COLLATE "C" NOT NULL,
  -- http, email
  kind text COLLATE "C" NOT NULL,
  -- The device that set it; NULL for a user of an application service who acts without one.
  device_id text COLLATE "C",
  app_display_name text NOT NULL,
  device_display_name text NOT NULL,
  profile_tag text,
  lang text NOT NULL,
  -- JSON
  data text NOT NULL,
  is_enabled boolean NOT NULL DEFAULT true,
  -- When it was set last, in milliseconds.
  set_at bigint NOT NULL,
  -- Everything up to this position of the event stream was sent, or needs not be. A pusher that does not lag has a later one: that of
  -- push_sent.
  position bigint NOT NULL,
  lags boolean NOT NULL DEFAULT false,
  -- Failures in a row, since when, and when the next attempt is due. For mails: when the next mail is due.
  failures integer NOT NULL DEFAULT 0,
  failing_since bigint,
  retry_at bigint NOT NULL DEFAULT 0,
  -- For mails: when the last one was sent, and the least time until the next.
  mailed_at bigint,
  pause_ms bigint NOT NULL DEFAULT 0,
  UNIQUE (user_nid, app_id, pushkey),
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);
-- Setting a pusher takes its key from other users.
CREATE INDEX pusher_key ON pusher (pushkey, app_id);
CREATE INDEX pusher_device ON pusher (user_nid, device_id);

-- The position of the event stream up to which every pusher that does not lag has sent everything.
CREATE TABLE push_sent (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  position bigint NOT NULL
);

-- Push gateways that did not answer: failures in a row, and when the next attempt is due. A gateway that answers has no row.
CREATE TABLE push_gateway (
  origin text COLLATE "C" PRIMARY KEY,
  failures integer NOT NULL,
  retry_at bigint NOT NULL
);
