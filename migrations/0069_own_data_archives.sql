-- Archives of people's data, which are made in the background. A file in the data directory holds each until it expires.

CREATE TABLE own_data_archive (
  user_nid bigint PRIMARY KEY REFERENCES account,
  -- The name of the file.
  file text COLLATE "C" NOT NULL,
  requested_at bigint NOT NULL,
  -- JSON: the part that comes next. NULL once all are there.
  next_part text,
  -- Of the file, with all parts before that one.
  bytes bigint NOT NULL,
  -- When it is tried again after a failure.
  due_at bigint NOT NULL,
  failures int NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX own_data_archive_due ON own_data_archive (due_at) WHERE next_part IS NOT NULL;
