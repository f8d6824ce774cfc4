import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Database } from '../../../src/store/db/db.ts'
import { createRoom } from '../../support/api.ts'
import { openNeighbourhood } from '../../support/neighbours.ts'
import { waitUntil } from '../../support/wait.ts'
import { type House, idsOf, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

/** The next event of this type takes the database longer than anybody waits, and is committed all the same. */
const STALL = `
CREATE TABLE stall_once (n int);
INSERT INTO stall_once VALUES (1);
CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.type = 'test.stall' THEN
    DELETE FROM stall_once;
    IF FOUND THEN PERFORM pg_sleep(9); END IF;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER stall BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION stall()`

async function stallOnce(db: Pick<Database, 'tx'>): Promise<void> {
  for (const statement of STALL.split(/;\n(?=CREATE|INSERT)/)) await db.tx((tx) => tx.query(statement))
}

it('an event whose commit was not answered reaches everybody once, without anybody writing again', async () => {
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  let since = (await bob.sync()).next_batch
  await stallOnce(house.server.database.db)

  const path = inRoom(room, '/send/test.stall/doubtful')
  const refused = await alice.ask('PUT', path, { n: 1 })
  expect([refused.status, refused.body.errcode]).toEqual([503, 'M_UNKNOWN'])

  const seen: string[] = []
  for (let round = 0; round < 20 && seen.length === 0; round++) {
    const body = await bob.call('GET', `/sync?timeout=1000&since=${since}`)
    since = body.next_batch
    seen.push(...idsOf(body.rooms?.join?.[room]?.timeline.events ?? []))
  }
  expect(seen).toHaveLength(1)
  expect((await alice.call('PUT', path, { n: 1 })).event_id).toBe(seen[0])

  const after = await alice.say(room, 'after')
  const body = await bob.call('GET', `/sync?timeout=5000&since=${since}`)
  expect(idsOf(body.rooms.join[room].timeline.events)).toEqual([after])
}, 60_000)

it('such an event reaches other servers, without anybody writing again', async () => {
  const neighbourhood = openNeighbourhood()
  try {
    const [here, there] = [await neighbourhood.open(), await neighbourhood.open()]
    const [carol, dave] = [await here.person('carol'), await there.person('dave')]
    const room = await createRoom(here.api, carol.token, { preset: 'public_chat' })
    await there.api.call('POST', `/join/${encodeURIComponent(room)}?server_name=${here.name}`, { token: dave.token })
    await stallOnce(here.server.database.db)
    const refused = await here.api.request('PUT', `/rooms/${encodeURIComponent(room)}/send/test.stall/doubtful`, {
      token: carol.token,
      body: { n: 1 },
    })
    expect(refused.status).toBe(503)
    await waitUntil(
      'the event at the other server',
      async () => {
        const path = `/rooms/${encodeURIComponent(room)}/messages?dir=b&limit=10`
        const { chunk } = await there.api.call('GET', path, { token: dave.token })
        return chunk.some(({ type }: { type: string }) => type === 'test.stall')
      },
      { timeoutMs: 20_000 },
    )
  } finally {
    await neighbourhood.close()
  }
}, 60_000)
