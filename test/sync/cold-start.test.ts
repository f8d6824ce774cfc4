import { afterAll, beforeAll, expect, it } from 'vitest'
import { type House, inRoom, openHouse, textsOf } from '../rooms/people.ts'
import { waitUntil } from '../support/wait.ts'

let house: House

beforeAll(async () => {
  house = await openHouse()
})
afterAll(() => house.close())

it('what was said before a kick is told, also when the kick is committed while the rooms of the user are read', async () => {
  const alice = await house.person('alice')
  const bob = await house.person('bob')
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  const { next_batch: since } = await bob.sync()
  await alice.say(room, 'before')
  await house.restart()
  // Loads all that kicking reads.
  await alice.say(room, 'warm')
  const { db } = house.server.database
  const waiting = async (count: number) =>
    waitUntil('statements to wait', async () => {
      const [row] = await db.query<{ count: number }>(
        `SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
      return row!.count >= count || undefined
    })
  const { kicked, synced } = await db.tx(async (tx) => {
    await tx.query('LOCK TABLE room_member IN ACCESS EXCLUSIVE MODE')
    const kicked = alice.call('POST', inRoom(room, '/kick'), { user_id: bob.userId })
    await waiting(1)
    const synced = bob.sync(`&since=${since}`)
    await waiting(2)
    return { kicked, synced }
  })
  await kicked
  const answer = await synced
  const second = await bob.sync(`&since=${answer.next_batch}`)
  const shown = [answer, second].flatMap(({ rooms }) =>
    [rooms?.join?.[room], rooms?.leave?.[room]].flatMap((section) => section?.timeline.events ?? []),
  )
  expect(textsOf(shown)).toEqual(['before', 'warm'])
})
