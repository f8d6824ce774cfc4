-- What operators decide about reports, and what they note on the way.
ALTER TABLE report
  -- NULL while it is open.
  ADD COLUMN decided_at bigint,
  ADD COLUMN decided_by text COLLATE "C",
  -- In words: what was done about it.
  ADD COLUMN decision text,
  -- The event as it was when it was reported; its sender may redact it since.
  ADD COLUMN event_json text;
CREATE INDEX report_open ON report (report_nid) WHERE decided_at IS NULL;

CREATE TABLE report_note (
  note_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  report_nid bigint NOT NULL REFERENCES report ON DELETE CASCADE,
  at bigint NOT NULL,
  author text COLLATE "C" NOT NULL,
  text text NOT NULL
);
CREATE INDEX report_note_report ON report_note (report_nid, note_nid);
