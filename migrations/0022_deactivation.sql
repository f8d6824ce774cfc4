-- Accounts that end: what is left to do for each, so that a restart forgets nothing of it.
ALTER TABLE account
  -- When its owner asked to be forgotten; NULL: never.
  ADD COLUMN erased_at bigint;

CREATE TABLE deactivation (
  user_nid bigint PRIMARY KEY REFERENCES account,
  -- Where addresses are unbound; NULL: wherever they were bound.
  id_server text COLLATE "C",
  requested_at bigint NOT NULL,
  -- When it is tried next. Whoever works on it moves it into the future.
  due_at bigint NOT NULL,
  attempts integer NOT NULL DEFAULT 0
);
CREATE INDEX deactivation_due ON deactivation (due_at);
