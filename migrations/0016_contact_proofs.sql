-- Validation sessions of the homeserver beside those of the identity service, and what they were used for.

-- Where a session was begun: it counts nowhere else.
ALTER TABLE identity_session ADD COLUMN realm text COLLATE "C" NOT NULL DEFAULT 'identity';

-- A validated session proves an address once.
CREATE TABLE contact_proof (
  -- SHA-256 of the identity server that keeps the session, nothing for ours, and the session's id.
  key bytea PRIMARY KEY,
  -- The session, where it is ours.
  sid text COLLATE "C",
  -- SHA-256 of what it was shown to: an interactive authentication, or the account that adds the address.
  shown_to bytea NOT NULL,
  shown_at bigint NOT NULL,
  -- From then on it counts for that alone.
  used_at bigint
);
CREATE INDEX contact_proof_shown ON contact_proof (shown_to);
CREATE INDEX contact_proof_age ON contact_proof (shown_at);
