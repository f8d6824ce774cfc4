-- A room that is deleted takes the events with it that were to be sent there later.

CREATE INDEX delayed_event_room ON delayed_event (room_id);
