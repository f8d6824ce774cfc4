-- Backups of this database, and how it came back from them.

-- The backups that were made, for operators.
CREATE TABLE backup_run (
  -- Its id in the place where it is.
  backup_id text COLLATE "C" NOT NULL,
  place text NOT NULL,
  begun_at bigint NOT NULL,
  ended_at bigint NOT NULL,
  -- Of the files of the database, as they were written.
  bytes bigint NOT NULL,
  PRIMARY KEY (ended_at, backup_id)
);

-- One row for each time that this database was restored from a backup, in order. Each begins an epoch: what was given out between the
-- backup and the restore is lost, and its numbers are not used again.
CREATE TABLE restore_epoch (
  epoch_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Four letters or digits, in the sync tokens of this epoch.
  epoch text COLLATE "C" NOT NULL,
  restored_at bigint NOT NULL,
  -- The newest positions of the event stream and of the ledger in the backup.
  event_position bigint NOT NULL,
  ledger_position bigint NOT NULL,
  -- New events are numbered above this one.
  event_floor bigint NOT NULL
);

-- Rooms in which other servers may have events of ours that were lost with a restore.
CREATE TABLE restored_room (
  room_nid bigint PRIMARY KEY,
  attempts integer NOT NULL DEFAULT 0,
  -- When it is tried next.
  due_at bigint NOT NULL DEFAULT 0
);
CREATE INDEX restored_room_due ON restored_room (due_at);

-- Users of ours whose device lists other servers must fetch again, because of a restore.
CREATE TABLE restored_user (
  user_nid bigint PRIMARY KEY
);
