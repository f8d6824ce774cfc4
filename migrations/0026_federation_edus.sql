-- What is no event and must reach other servers all the same: messages to devices, and word of changed device lists.

CREATE TABLE federation_edu (
  -- The order in which they are sent.
  edu_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  -- Whose device list it is about: the newest word replaces those before it. Null for messages to devices, of which each counts.
  about_nid bigint REFERENCES matrix_user,
  -- Canonical JSON: `{content, edu_type}`
  json text NOT NULL,
  created_at bigint NOT NULL
);
CREATE INDEX federation_edu_server ON federation_edu (server, edu_nid);
CREATE INDEX federation_edu_about ON federation_edu (about_nid, server) WHERE about_nid IS NOT NULL;
CREATE INDEX federation_edu_age ON federation_edu USING brin (created_at);

-- Messages to devices that other servers have sent, so that none is taken in twice.
CREATE TABLE federation_message (
  -- SHA-256 of the origin and the message's id.
  message_hash bytea PRIMARY KEY,
  received_at bigint NOT NULL
);
CREATE INDEX federation_message_age ON federation_message USING brin (received_at);
