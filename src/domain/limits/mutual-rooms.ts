/** Rooms on one page of the rooms that two users share. */
export const MUTUAL_ROOMS_PER_PAGE = 100
