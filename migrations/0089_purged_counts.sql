-- How many events counted as unread up to where history was removed, so that what is gone counts for nobody any more.

-- The room's count of notifiable events at `purged_to`; NULL where the release before removed the history.
ALTER TABLE room ADD COLUMN purged_notifiable bigint;
