import type { ServerName } from '../../../core/ids.ts'
import { accountDataBetween, accountDataOfRooms, findAccountData } from '../../../store/accounts/account-data.ts'
import { findToken } from '../../../store/accounts/tokens.ts'
import type { Database } from '../../../store/db/db.ts'
import { getEventsWithin } from '../../../store/events/events.ts'
import { receiptsToBegin } from '../../../store/events/receipts.ts'
import { getFirstTimelines, getRecentTimelines } from '../../../store/events/recent-timelines.ts'
import { getStateKeys, loadCurrentStates } from '../../../store/events/state.ts'
import { getStateTexts } from '../../../store/events/state-texts.ts'
import { getUnread } from '../../../store/events/unread.ts'
import { countKeys } from '../../../store/keys/one-time-keys.ts'
import { inboxBounds } from '../../../store/keys/to-device.ts'
import { getRoomTypesOfUser } from '../../../store/rooms/room-facts.ts'
import {
  countMembers,
  getJoinedOfServer,
  getMemberships,
  getNewestEventsOfUser,
  getRooms,
} from '../../../store/rooms/rooms.ts'
import type { LifecyclePart } from '../../lifecycle.ts'

const NOBODY = 0
const NO_BYTES = { maxBytes: 0 }

/**
 * Asks for nobody what a client's first sync asks. A new connection reads the catalogue for each statement, and plans it: so it has done that
 * while the rest of the server starts, before the clients come that waited for the start.
 */
export function createPlanAhead({
  db,
  serverName,
}: {
  readonly db: Pick<Database, 'query' | 'bulk'>
  readonly serverName: ServerName
}): LifecyclePart {
  const none: readonly number[] = []
  return {
    name: 'plans of first syncs',
    start() {
      const planning = [
        findToken(db, Buffer.alloc(0)),
        getMemberships(db, NOBODY),
        getNewestEventsOfUser(db, NOBODY),
        getRoomTypesOfUser(db.bulk, NOBODY),
        findAccountData(db, NOBODY, '', ''),
        countKeys(db, none, []),
        getRooms(db, none),
        getRecentTimelines(db, none, 1),
        getFirstTimelines(db, none, 1, 0),
        getUnread(db, NOBODY, none, { threads: 0, lookedAt: 0 }, []),
        getStateKeys(db, none),
        loadCurrentStates(db, none),
        getEventsWithin(db, none, 0),
        getStateTexts(db, none, 0, 0),
        getStateTexts(db.bulk, none, 0, 0),
        getJoinedOfServer(db, none, serverName),
        countMembers(db, none),
        inboxBounds(db, { userNid: NOBODY, deviceId: '' }),
        accountDataBetween(db, NOBODY, 0, 0, NO_BYTES),
        accountDataOfRooms(db, NOBODY, [], { after: 0, upTo: 0, ...NO_BYTES }),
        receiptsToBegin(db, none, NOBODY, { eventNids: none, upTo: 0, searched: 0 }),
      ]
      // If it fails, the first client waits for it, as it would without this.
      Promise.all(planning).catch(() => {})
    },
  }
}
