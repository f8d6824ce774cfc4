import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MAX_SSO_FLOWS, SSO_FLOW_MS } from '../../src/domain/limits/sso.ts'
import { createFlows } from '../../src/domain/sso/flows.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { inPortions } from '../support/portions.ts'

const ATTEMPT = { providerId: 'example', purpose: { kind: 'login', returnTo: 'https://app.example.com/' } } as const
const PERSON = { subject: 's', suggestion: 'alice', displayName: undefined, email: undefined }

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

it('of too many sign-ins that anybody began the oldest end, and none of those whom the other service has confirmed', async () => {
  const { db } = database
  let now = Date.now()
  const flows = createFlows({ db, clock: { now: () => now }, random: { bytes: randomBytes } })
  const browser = flows.browserSecret(undefined)
  const [early, parked] = [await flows.begin(ATTEMPT, browser), await flows.park(ATTEMPT, browser, PERSON)]
  await inPortions(MAX_SSO_FLOWS, (from, to) =>
    db.tx((tx) =>
      tx.query(
        `INSERT INTO sso_flow (flow_hash, browser_hash, provider, purpose, started_at, expires_at)
         SELECT int8send(n), '', 'example', '{}', $1, $1::bigint + $2 + n FROM generate_series($3::int, $4::int) n`,
        [now, SSO_FLOW_MS, from, to],
      ),
    ),
  )
  now += 60_000
  const late = await flows.begin(ATTEMPT, browser)
  const [row] = await db.query<{ count: number }>('SELECT count(*)::int AS count FROM sso_flow')
  expect(row!.count).toBeLessThanOrEqual(MAX_SSO_FLOWS * 0.9 + 2)
  expect(await flows.answer(early, browser)).toBeUndefined()
  expect(await flows.parked(parked, browser)).toMatchObject({ person: { suggestion: 'alice' } })
  expect(await flows.answer(late, browser)).toMatchObject({ providerId: 'example' })
})
