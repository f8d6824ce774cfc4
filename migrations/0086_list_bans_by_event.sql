-- Which event is the ban because of a policy list, so that the end of a rule ends no ban that somebody set again since; and the servers whose
-- changes of device lists were refused while a list banned them, so that these lists count as changed afterwards.

-- Null where the release before wrote the row.
ALTER TABLE list_ban ADD COLUMN event_id text COLLATE "C";

CREATE TABLE missed_device_list (
  server text COLLATE "C" PRIMARY KEY,
  -- When the newest change was refused, in milliseconds.
  at bigint NOT NULL
);
