-- Which servers were put into the server ACLs of rooms because of policy lists (`moderation.write_acls`), so that the end of a rule takes
-- these out again, and nothing that people wrote.

CREATE TABLE list_acl (
  room_nid bigint PRIMARY KEY,
  -- JSON: globs, as they are in `deny`.
  denied text NOT NULL
);
