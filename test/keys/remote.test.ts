import { afterAll, beforeAll, expect, it } from 'vitest'
import { ByteBudget } from '../../src/core/byte-budget.ts'
import type { ServerName, UserId } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import type { Requester } from '../../src/domain/accounts/requester.ts'
import { NO_DEVICE_NEWS } from '../../src/domain/appservices/news.ts'
import { createFanOut } from '../../src/domain/fan-out.ts'
import { createDeviceLists } from '../../src/domain/keys/device-lists.ts'
import { createDeviceKeyCounts } from '../../src/domain/keys/key-counts.ts'
import { createKeyServices, type KeyServices } from '../../src/domain/keys/key-services.ts'
import type { RemoteKeys } from '../../src/domain/keys/remote-keys.ts'
import { createNotifier } from '../../src/domain/sync/notifier.ts'
import { createUserRooms } from '../../src/domain/sync/user-rooms.ts'
import { createUsers } from '../../src/domain/users.ts'
import { openLedger } from '../../src/store/db/ledger.ts'
import { NO_BOUNDS } from '../support/bounds.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { NOBODY_ELSEWHERE } from '../support/nobody-elsewhere.ts'
import { crossSigner, deviceMaker } from './key-maker.ts'

const EVE = '@eve:elsewhere.test' as UserId
const MAL = '@mal:elsewhere.test' as UserId

let database: TestDatabase
let keys: KeyServices
let alice: Requester
let answer: JsonObject = {}
const asked: unknown[] = []

/** The other server, which says whatever the test wants. */
const remote: RemoteKeys = {
  query: async (server, users, timeoutMs) => {
    asked.push([server, users, timeoutMs])
    return answer
  },
  claim: async (server, wanted) => {
    asked.push([server, wanted])
    return answer
  },
}

beforeAll(async () => {
  database = await createTestDatabase()
  const { db } = database
  const ledger = await openLedger(db)
  const notifier = createNotifier()
  const users = createUsers({ db })
  const deviceLists = createDeviceLists({
    db,
    remote: NOBODY_ELSEWHERE,
    services: NO_DEVICE_NEWS,
    ledger,
    notifier,
    userRooms: createUserRooms({ db, budget: new ByteBudget(1_000_000) }),
  })
  const keyCounts = createDeviceKeyCounts({ db, ledger, notifier, maxDevices: 10 })
  const config = { server_name: 'localhost' as ServerName }
  const fanOut = createFanOut({
    base: {
      config,
      db,
      // The time left is the whole time.
      clock: { now: () => 0 },
      metrics: { bounds: NO_BOUNDS },
      rateLimitOverrides: { get: () => undefined },
    },
    roomBase: { registry: { peek: () => undefined }, partialStateRooms: { all: () => [] } },
  })
  keys = createKeyServices({
    base: { config, db, ledger, clock: Date, users },
    syncBase: { deviceLists, keyCounts },
    remote,
    fanOut,
    services: NO_DEVICE_NEWS,
  })
  const userId = '@alice:localhost' as UserId
  const userNid = (await users.intern([userId])).get(userId)!
  alice = { userId, userNid, deviceId: 'A', tokenNid: 1, isGuest: false }
})
afterAll(() => database.drop())

const textsOf = (map: ReadonlyMap<string, string> | undefined) =>
  Object.fromEntries([...(map ?? [])].map(([key, json]) => [key, JSON.parse(json)]))

it('gives what another server says of its users, as far as it is well-formed and about them', async () => {
  const maker = deviceMaker({ userId: EVE, deviceId: 'GOOD' })
  const signer = crossSigner(EVE)
  const { master_key, self_signing_key } = signer.body()
  const signed = signJson(maker.identity(), EVE, signer.keys.self_signing)
  answer = {
    device_keys: {
      [EVE]: {
        GOOD: { ...signed, unsigned: { device_display_name: 'phone', secret: 1 } },
        OTHERS: maker.identity(),
        FORGED: { ...deviceMaker({ userId: EVE, deviceId: 'FORGED' }).identity(), more: 1 },
        FLOAT: deviceMaker({ userId: EVE, deviceId: 'FLOAT' }).identity({ more: 1.5 }),
        NOTHING: null,
        LIST: [],
      },
      [MAL]: 'nothing',
      '@alice:localhost': { A: deviceMaker({ userId: '@alice:localhost', deviceId: 'A' }).identity() },
    },
    master_keys: { [EVE]: master_key!, [MAL]: crossSigner(EVE).body().master_key! },
    self_signing_keys: { [EVE]: self_signing_key!, [MAL]: {} },
    user_signing_keys: { [EVE]: signer.body().user_signing_key! },
  }
  const { keys: known, failures } = await keys.keyQueries.query(
    alice,
    new Map([
      [EVE, []],
      [MAL, ['X']],
    ]),
    1_234,
  )
  expect(asked.at(-1)).toEqual(['elsewhere.test', { [EVE]: [], [MAL]: ['X'] }, 1_234])
  expect(failures).toEqual({})
  expect([...known.devices.keys()]).toEqual([EVE])
  expect(textsOf(known.devices.get(EVE))).toEqual({ GOOD: { ...signed, unsigned: { device_display_name: 'phone' } } })
  expect(textsOf(known.master)).toEqual({ [EVE]: signer.object('master') })
  expect(textsOf(known.self_signing)).toEqual({ [EVE]: self_signing_key })
  expect(known.user_signing.size).toBe(0)
})

it('passes over a self-signing key that the master key has not signed', async () => {
  answer = {
    master_keys: { [EVE]: crossSigner(EVE).body().master_key! },
    self_signing_keys: { [EVE]: crossSigner(EVE).body().self_signing_key! },
  }
  const { keys: known } = await keys.keyQueries.query(alice, new Map([[EVE, []]]), 1_000)
  expect([known.master.size, known.self_signing.size]).toEqual([1, 0])
})

it.each([{}, { device_keys: [] }, { device_keys: { [EVE]: 1 }, master_keys: 'x' }, { master_keys: { [EVE]: [] } }])(
  'bears the answer %j',
  async (odd) => {
    answer = odd as JsonObject
    const { keys: known } = await keys.keyQueries.query(alice, new Map([[EVE, []]]), 1_000)
    expect([known.devices.size, known.master.size]).toEqual([0, 0])
    expect((await keys.keyClaims.claim(alice, new Map([[EVE, new Map([['D', 'a']])]]), 1_000)).keys.size).toBe(0)
  },
)

it('claims keys of other servers, of the devices that were asked for alone', async () => {
  const maker = deviceMaker({ userId: EVE, deviceId: 'D' })
  const key = maker.named('signed_curve25519:k')
  const unsigned = { 'signed_curve25519:k': { key: 'x' } }
  answer = { one_time_keys: { [EVE]: { D: key, E: unsigned, F: key }, [MAL]: { D: key } } }
  const wanted = new Map([
    [
      EVE,
      new Map([
        ['D', 'signed_curve25519'],
        ['E', 'signed_curve25519'],
      ]),
    ],
  ])
  const { keys: claimed } = await keys.keyClaims.claim(alice, wanted, 1_000)
  expect([...claimed.keys()]).toEqual([EVE])
  expect(textsOf(claimed.get(EVE))).toEqual({ D: key })
})

it("keeps a user's own signature of a master key on another server, and shows it to that user", async () => {
  const own = crossSigner(alice.userId)
  const {
    master_key: master,
    self_signing_key: self_signing,
    user_signing_key: user_signing,
  } = own.body() as Record<string, JsonObject>
  await keys.crossSigning.upload(alice, { master, self_signing, user_signing }, false)
  const signer = crossSigner(EVE)
  answer = { master_keys: { [EVE]: signer.object('master') } }
  const signed = signJson(signer.object('master'), alice.userId, own.keys.user_signing)
  const { publicKey } = signer.keys.master
  expect(await keys.keySignatures.upload(alice, new Map([[EVE, { [publicKey]: signed }]]))).toEqual({})
  const seen = async (by: Requester) =>
    JSON.parse((await keys.keyQueries.query(by, new Map([[EVE, []]]), 1_000)).keys.master.get(EVE)!)
  expect((await seen(alice)).signatures).toEqual(signed.signatures)
  expect((await seen({ ...alice, userId: '@bob:localhost' as UserId, userNid: 999_999 })).signatures).toBeUndefined()
})
