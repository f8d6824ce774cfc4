-- Events that are sticky for a while (MSC4354): a sync delivers them wherever they are in the timeline.

CREATE TABLE sticky_event (
  event_nid bigint PRIMARY KEY,
  room_nid bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX sticky_event_age ON sticky_event (expires_at);

-- How long an event that is sent later will be sticky; NULL: not at all.
ALTER TABLE delayed_event ADD COLUMN sticky_ms bigint;
