-- Messages that are removed by their age.

-- Whether it is a matter of age: nobody asked for it, and nothing is kept of it once it is done.
ALTER TABLE history_purge ADD COLUMN is_by_age boolean NOT NULL DEFAULT false;

-- The newest event that this server had at a time, as noted from time to time. What an event says of its own time may be wrong.
CREATE TABLE arrival_mark (
  at bigint PRIMARY KEY,
  event_nid bigint NOT NULL
);

-- After a restore, what is over by its age is over again: no note of it is needed.
DROP TRIGGER history_undone ON history_purge;
CREATE TRIGGER history_undone AFTER INSERT ON history_purge FOR EACH ROW WHEN (NOT NEW.is_by_age) EXECUTE FUNCTION note_undone('purge');
