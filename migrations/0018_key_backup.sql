-- Backups of the keys of encrypted rooms. They are encrypted by clients: nothing here can be read by the server.

-- One row per user who ever had a backup. Whoever changes anything of a user's backups locks it first.
CREATE TABLE key_backup_owner (
  user_nid bigint PRIMARY KEY REFERENCES account,
  -- No version is given twice, also when it was deleted.
  last_version bigint NOT NULL
);

-- The highest version of a user is the current one.
CREATE TABLE key_backup (
  user_nid bigint NOT NULL REFERENCES key_backup_owner,
  version bigint NOT NULL,
  algorithm text NOT NULL,
  -- JSON
  auth_data text NOT NULL,
  -- Counts the changes of its keys.
  etag bigint NOT NULL,
  key_count bigint NOT NULL,
  PRIMARY KEY (user_nid, version)
);

CREATE TABLE backed_up_key (
  user_nid bigint NOT NULL,
  version bigint NOT NULL,
  room_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  first_message_index bigint NOT NULL,
  forwarded_count bigint NOT NULL,
  is_verified boolean NOT NULL,
  -- JSON
  session_data text NOT NULL,
  PRIMARY KEY (user_nid, version, room_id, session_id),
  FOREIGN KEY (user_nid, version) REFERENCES key_backup ON DELETE CASCADE
);
