import type { SyncSources } from '../sources.ts'
import type { SlidingSources } from './sources.ts'
import type { Turn } from './turns.ts'

/**
 * Reads what a look needs of a user of whom nothing is in memory, side by side: the look alone would read one after the other. What is
 * read stays in memory, so the look finds it there.
 *
 * @param rooms the user's rooms, which are being read
 * @param ledger a position that is published
 */
export async function readAhead(
  { sources, own }: { readonly sources: SyncSources; readonly own: SlidingSources },
  { by, request }: Pick<Turn, 'by' | 'request'>,
  rooms: Promise<unknown>,
  ledger: number,
): Promise<void> {
  const { lists, subscriptions, extensions } = request.asked
  const isTyped = [...lists.values()].some(({ filters }) => filters.roomTypes ?? filters.notRoomTypes)
  await Promise.all([
    rooms,
    lists.size + subscriptions.size > 0 ? own.recency.knowAll(by.userNid) : undefined,
    isTyped ? own.roomFacts.learnAllTypes(by.userNid) : undefined,
    own.directRooms(by.userNid, ledger),
    sources.ignoredUsers.of(by.userNid),
    extensions.e2ee && sources.keyCounts.of(by),
  ])
}
