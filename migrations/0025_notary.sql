-- What other homeservers answered when they were asked for their keys, to be passed on with our signature.

CREATE TABLE server_key_answer (
  server_name text COLLATE "C" NOT NULL PRIMARY KEY,
  -- The whole answer with its signatures, as JSON.
  answer text NOT NULL,
  fetched_at bigint NOT NULL,
  -- What the answer itself says.
  valid_until bigint NOT NULL
);

CREATE INDEX server_key_answer_valid_until ON server_key_answer (valid_until);
