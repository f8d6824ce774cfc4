-- Accounts that are to be led into the rooms of the server (`registration.auto_join`).

CREATE TABLE newcomer (
  user_nid bigint PRIMARY KEY,
  due_at bigint NOT NULL,
  attempts integer NOT NULL DEFAULT 0
);
CREATE INDEX newcomer_due ON newcomer (due_at);
