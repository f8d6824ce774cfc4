-- The push rules of users who changed any: what differs from the server-default rules, as JSON.

CREATE TABLE push_rules (
  user_nid bigint PRIMARY KEY,
  rules text NOT NULL,
  -- Position in the ledger.
  position bigint NOT NULL
);
