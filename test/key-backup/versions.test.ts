import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_KEY_BACKUPS } from '../../src/domain/limits.ts'
import { type Api, openApi, PASSWORD } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { ALGORITHM, keysPath, newKey, newOwner, type Owner, ROOM } from './backups.ts'

let server: TestServer
let api: Api
let count = 0
const owner = (): Promise<Owner> => newOwner(api, `owner-${++count}`)

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
})
afterAll(async () => {
  await api.close()
  await server.close()
})

describe('POST room_keys/version', () => {
  it('makes the current backup, with versions that are strings and rise for each user', async () => {
    const [alice, bob] = [await owner(), await owner()]
    expect(await alice.backup({ public_key: 'one' })).toBe('1')
    expect(await alice.backup({ public_key: 'two' })).toBe('2')
    expect(await bob.backup()).toBe('1')
    expect(await alice.call('GET', '/room_keys/version')).toEqual({
      version: '2',
      algorithm: ALGORITHM,
      auth_data: { public_key: 'two' },
      etag: expect.any(String),
      count: 0,
    })
  })

  it('gives no version twice, not after a deletion and not to parallel calls', async () => {
    const alice = await owner()
    await alice.backup()
    await alice.call('DELETE', '/room_keys/version/1')
    const versions = await Promise.all(Array.from({ length: 10 }, () => alice.backup()))
    expect(versions.map(Number).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, i) => i + 2))
  })

  it(`removes the oldest beyond ${MAX_KEY_BACKUPS}`, async () => {
    const alice = await owner()
    for (let made = 0; made < MAX_KEY_BACKUPS + 2; made++) await alice.backup()
    expect((await alice.ask('GET', '/room_keys/version/2')).body.errcode).toBe('M_NOT_FOUND')
    expect((await alice.ask('GET', '/room_keys/version/3')).status).toBe(200)
  })

  it.each([
    ['no algorithm', { auth_data: {} }, 400, 'M_MISSING_PARAM'],
    ['no auth_data', { algorithm: ALGORITHM }, 400, 'M_MISSING_PARAM'],
    ['auth_data that is a number', { algorithm: ALGORITHM, auth_data: 5 }, 400, 'M_BAD_JSON'],
    ['large auth_data as text', { algorithm: ALGORITHM, auth_data: 'x'.repeat(65_536) }, 413, 'M_TOO_LARGE'],
    ['an algorithm of 256 characters', { algorithm: 'x'.repeat(256), auth_data: {} }, 400, 'M_INVALID_PARAM'],
    ['large auth_data', { algorithm: ALGORITHM, auth_data: { x: 'x'.repeat(65_536) } }, 413, 'M_TOO_LARGE'],
  ])('refuses %s', async (_, body, status, errcode) => {
    const alice = await owner()
    const answer = await alice.ask('POST', '/room_keys/version', body)
    expect([answer.status, answer.body.errcode]).toEqual([status, errcode])
  })
})

describe('GET room_keys/version', () => {
  it('is 404 M_NOT_FOUND without a backup', async () => {
    const { status, body } = await (await owner()).ask('GET', '/room_keys/version')
    expect([status, body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  })

  it('falls back to the version before when the current one is deleted', async () => {
    const alice = await owner()
    await alice.backup({ n: 1 })
    await alice.backup({ n: 2 })
    await alice.call('DELETE', '/room_keys/version/2')
    expect(await alice.call('GET', '/room_keys/version')).toMatchObject({ version: '1', auth_data: { n: 1 } })
  })
})

describe('GET room_keys/version/{version}', () => {
  it('gives any version of the user', async () => {
    const alice = await owner()
    await alice.backup({ n: 1 })
    await alice.backup({ n: 2 })
    expect(await alice.call('GET', '/room_keys/version/1')).toMatchObject({ version: '1', auth_data: { n: 1 } })
  })

  it.each(['2', '0', '-1', '01', '1.0', 'x', '9'.repeat(30), '%20'])('is 404 for version %s', async (version) => {
    const alice = await owner()
    await alice.backup()
    const { status, body } = await alice.ask('GET', `/room_keys/version/${version}`)
    expect([status, body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  })

  it("knows nothing of another user's", async () => {
    const [alice, bob] = [await owner(), await owner()]
    await alice.backup()
    expect((await bob.ask('GET', '/room_keys/version/1')).status).toBe(404)
    expect((await bob.ask('GET', keysPath('1'))).status).toBe(404)
    expect((await bob.ask('DELETE', '/room_keys/version/1')).status).toBe(404)
    expect((await alice.ask('GET', '/room_keys/version/1')).status).toBe(200)
  })
})

describe('PUT room_keys/version/{version}', () => {
  it('changes auth_data and nothing else', async () => {
    const alice = await owner()
    const version = await alice.backup()
    await alice.call('PUT', keysPath(version, ROOM, 's'), newKey())
    const before = await alice.call('GET', '/room_keys/version')
    const body = { algorithm: ALGORITHM, auth_data: { public_key: 'abc', signatures: {} }, version }
    expect(await alice.call('PUT', `/room_keys/version/${version}`, body)).toEqual({})
    expect(await alice.call('GET', '/room_keys/version')).toEqual({ ...before, auth_data: body.auth_data })
  })

  it.each([
    ['another algorithm', '1', { algorithm: 'm.other', auth_data: {} }, 400, 'M_INVALID_PARAM'],
    ['another version in the body', '1', { algorithm: ALGORITHM, auth_data: {}, version: '2' }, 400, 'M_INVALID_PARAM'],
    ['a version that does not exist', '2', { algorithm: ALGORITHM, auth_data: {} }, 404, 'M_NOT_FOUND'],
  ])('refuses %s', async (_, version, body, status, errcode) => {
    const alice = await owner()
    await alice.backup()
    const answer = await alice.ask('PUT', `/room_keys/version/${version}`, body)
    expect([answer.status, answer.body.errcode]).toEqual([status, errcode])
  })
})

describe('DELETE room_keys/version/{version}', () => {
  it('removes the backup with its keys', async () => {
    const alice = await owner()
    const version = await alice.backup()
    await alice.call('PUT', keysPath(version, ROOM, 's'), newKey())
    expect(await alice.call('DELETE', `/room_keys/version/${version}`)).toEqual({})
    for (const path of [`/room_keys/version/${version}`, keysPath(version), keysPath(version, ROOM, 's')]) {
      expect((await alice.ask('GET', path)).body.errcode, path).toBe('M_NOT_FOUND')
    }
    const [row] = await server.database.db.query<{ count: number }>(
      'SELECT count(*) AS count FROM backed_up_key JOIN matrix_user USING (user_nid) WHERE user_id = $1',
      [alice.userId],
    )
    expect(row!.count).toBe(0)
  })

  it('succeeds for one that was deleted before, and is 404 for one that never was', async () => {
    const alice = await owner()
    const version = await alice.backup()
    await alice.call('DELETE', `/room_keys/version/${version}`)
    expect((await alice.ask('DELETE', `/room_keys/version/${version}`)).status).toBe(200)
    expect((await alice.ask('DELETE', '/room_keys/version/2')).body.errcode).toBe('M_NOT_FOUND')
    expect((await alice.ask('DELETE', '/room_keys/version/0')).body.errcode).toBe('M_NOT_FOUND')
  })
})

it('goes with the account', async () => {
  const alice = await owner()
  const version = await alice.backup()
  await alice.call('PUT', keysPath(version, ROOM, 's'), newKey())
  const identifier = { type: 'm.id.user', user: alice.userId }
  const auth = { type: 'm.login.password', identifier, password: PASSWORD }
  await alice.call('POST', '/account/deactivate', { auth })
  const [row] = await server.database.db.query<{ count: number }>(
    `SELECT count(*) AS count FROM key_backup LEFT JOIN backed_up_key USING (user_nid, version) JOIN matrix_user USING (user_nid)
     WHERE user_id = $1`,
    [alice.userId],
  )
  expect(row!.count).toBe(0)
})

it('guests have no backups', async () => {
  const { body } = await api.request('POST', '/register?kind=guest', { body: {} })
  const answer = await api.request('GET', '/room_keys/version', { token: body.access_token })
  expect([answer.status, answer.body.errcode]).toEqual([403, 'M_GUEST_ACCESS_FORBIDDEN'])
})

it('old clients use the same backup under client/unstable', async () => {
  const alice = await owner()
  const old = (path: string) => `/_matrix/client/unstable${path}`
  const made = { algorithm: ALGORITHM, auth_data: { old: true } }
  const { version } = await alice.call('POST', old('/room_keys/version'), made)
  const key = newKey()
  await alice.call('PUT', old(keysPath(version)), { rooms: { [ROOM]: { sessions: { s: key } } } })
  await alice.call('PUT', old(keysPath(version, ROOM)), { sessions: { t: key } })
  await alice.call('PUT', old(keysPath(version, ROOM, 'u')), key)
  expect(await alice.call('GET', old('/room_keys/version'))).toMatchObject({ version, count: 3, ...made })
  expect(await alice.call('GET', old(`/room_keys/version/${version}`))).toMatchObject({ version })
  expect(await alice.call('GET', old(keysPath(version, ROOM, 's')))).toEqual(key)
  expect(await alice.call('GET', keysPath(version))).toEqual({
    rooms: { [ROOM]: { sessions: { s: key, t: key, u: key } } },
  })
  expect((await alice.call('DELETE', old(keysPath(version, ROOM, 's')))).count).toBe(2)
  expect((await alice.call('DELETE', old(keysPath(version, ROOM)))).count).toBe(0)
  expect((await alice.call('DELETE', old(keysPath(version)))).count).toBe(0)
  await alice.call('PUT', old(`/room_keys/version/${version}`), made)
  await alice.call('DELETE', old(`/room_keys/version/${version}`))
  expect((await alice.ask('GET', '/room_keys/version')).body.errcode).toBe('M_NOT_FOUND')
})
