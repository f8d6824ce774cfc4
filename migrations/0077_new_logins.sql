-- Logins on new devices, until their account's owner has been told, and for a while after that.

CREATE TABLE new_login (
  user_nid bigint NOT NULL REFERENCES account,
  device_id text COLLATE "C" NOT NULL,
  device_name text,
  -- Where the login came from, as the server saw it.
  ip text,
  -- The languages that its client wanted, as in Accept-Language.
  languages text,
  logged_in_at bigint NOT NULL,
  -- When the owner is to be told.
  due_at bigint NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  sent_at bigint,
  PRIMARY KEY (user_nid, device_id)
);

CREATE INDEX new_login_due ON new_login (due_at) WHERE sent_at IS NULL;
CREATE INDEX new_login_sent ON new_login (sent_at) WHERE sent_at IS NOT NULL;
