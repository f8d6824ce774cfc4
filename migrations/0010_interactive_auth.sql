-- Interactive authentication: whose sessions there are, what each may still complete, and nothing that could be used if it leaked.
-- From here on `uia_session.session_id` is the SHA-256 of what the client holds, and `body_hash` is keyed by it.
ALTER TABLE uia_session
  -- The account that calls; else the address of somebody who has none.
  ADD COLUMN user_nid bigint,
  ADD COLUMN address text COLLATE "C",
  -- JSON: the flows as they were last told.
  ADD COLUMN flows text NOT NULL DEFAULT '[]',
  ADD COLUMN attempts integer NOT NULL DEFAULT 0;
CREATE INDEX uia_session_user ON uia_session (user_nid, created_at) WHERE user_nid IS NOT NULL;
CREATE INDEX uia_session_address ON uia_session (address, created_at) WHERE address IS NOT NULL;
