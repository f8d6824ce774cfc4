-- Who was banned from which rooms because policy lists say so (`moderation.ban_as`), so that the end of a rule ends that too.

CREATE TABLE list_ban (
  room_nid bigint NOT NULL REFERENCES room ON DELETE CASCADE,
  user_nid bigint NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (room_nid, user_nid)
);
CREATE INDEX list_ban_at ON list_ban (at);
