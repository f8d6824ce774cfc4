import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, type Api, createRoom, login, openApi, PASSWORD, sendText } from '../support/api.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { fetchFile, uploadFile } from '../support/media.ts'
import { runProgramHere } from '../support/run-hearth.ts'

let server: ChildServer
let api: Api
beforeAll(async () => {
  const env = { HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4', HEARTH__RATE_LIMITS__ENABLED: 'false' }
  server = await startChildServer({ env })
  api = openApi(server.baseUrl)
})
afterAll(async () => {
  await api?.close()
  await server?.dispose()
})

function hearth(words: string[], input = '') {
  const env = {
    HEARTH__DATA_DIR: join(server.dataDir, 'data'),
    HEARTH__LISTEN__PORT: new URL(server.baseUrl).port,
    HEARTH__METRICS__PORT: '0',
    HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
  }
  return runProgramHere(words, { directory: server.dataDir, env, input })
}

async function done(words: string[], input = ''): Promise<string> {
  const { code, stdout, stderr } = await hearth(words, input)
  expect([code, stderr], words.join(' ')).toEqual([0, ''])
  return stdout
}

const isKnown = async ({ token }: Account) => (await api.request('GET', '/account/whoami', { token })).status === 200

describe('beside a running server', () => {
  test('an account is locked and unlocked, suspended and released', async () => {
    await done(['user', 'create', 'carl'], `${PASSWORD}\n`)
    const { token } = await login(api, 'carl')
    const errcodeOf = async () => (await api.request('POST', '/createRoom', { token, body: {} })).body.errcode
    await done(['user', 'lock', 'carl'])
    expect(await errcodeOf()).toBe('M_USER_LOCKED')
    expect(await done(['user', 'list'])).toMatch(/@carl:localhost.*locked/)
    await done(['user', 'unlock', 'carl'])
    await done(['user', 'suspend', 'carl'])
    expect(await errcodeOf()).toBe('M_USER_SUSPENDED')
    await done(['user', 'release', 'carl'])
    expect(await errcodeOf()).toBeUndefined()
  })

  test('a crowd is found, locked, redacted, hidden and unlocked', async () => {
    await done(['user', 'create', 'spam1'], `${PASSWORD}\n`)
    await done(['user', 'create', 'spam2'], `${PASSWORD}\n`)
    const account = await login(api, 'spam1')
    const crowd = ['--name', 'spam?', '--registered-after', '1h']
    expect(await done(['crowd', 'find', ...crowd])).toBe('@spam1:localhost\n@spam2:localhost\n2 accounts\n')
    expect(await done(['crowd', 'lock', ...crowd])).toBe('2 accounts locked.\n')
    expect(await isKnown(account)).toBe(false)
    expect(await done(['crowd', 'redact', ...crowd])).toBe('What 2 accounts said is being redacted.\n')
    expect(await done(['crowd', 'quarantine', '--user', 'spam1'])).toBe('0 files of 1 account hidden.\n')
    expect(await done(['crowd', 'unlock', ...crowd])).toBe('2 accounts unlocked.\n')
    expect(await isKnown(account)).toBe(true)
    expect((await hearth(['crowd', 'lock'])).stderr).toContain('say whom')
    expect((await hearth(['crowd', 'lock', '--registered-after', 'noon'])).stderr).toContain('noon is no time')
    expect(await done(['audit'])).toContain('/_hearth/admin/v1/crowds/restrain')
  })

  test('the first administrator is made, and what is taken is taken at once', async () => {
    await done(['user', 'create', 'alice'], `${PASSWORD}\n`)
    const alice = await login(api, 'alice')
    const list = () => api.request('GET', '/_synapse/admin/v2/users', { token: alice.token })
    expect((await list()).status).toBe(403)
    expect(await done(['user', 'make-admin', 'alice'])).toContain('@alice:localhost may administer')
    expect((await list()).status).toBe(200)
    await done(['user', 'remove-admin', '@alice:localhost'])
    expect((await list()).status).toBe(403)
  })

  test('a token that the server has in memory ends with a logout and with a new password', async () => {
    await done(['user', 'create', 'bob'], `${PASSWORD}\n`)
    const first = await login(api, 'bob')
    expect(await isKnown(first)).toBe(true)
    expect(await done(['user', 'logout', 'bob'])).toContain('1 devices')
    expect(await isKnown(first)).toBe(false)
    const second = await login(api, 'bob')
    expect(await isKnown(second)).toBe(true)
    await done(['user', 'reset-password', 'bob', '--keep-devices'], 'another password\n')
    expect(await isKnown(second)).toBe(true)
    await done(['user', 'reset-password', 'bob'], 'a third password\n')
    expect(await isKnown(second)).toBe(false)
    await login(api, 'bob', 'a third password')
  })

  test('users are listed and shown', async () => {
    await done(['user', 'create', 'carol', '--admin'], `${PASSWORD}\n`)
    expect(await done(['user', 'list', '--admins'])).toMatch(/^@carol:localhost .* admin\n$/)
    const listed = JSON.parse(await done(['user', 'list', '--name', 'carol', '--json']))
    expect(listed).toMatchObject([{ name: '@carol:localhost', admin: true }])
    expect(JSON.parse(await done(['user', 'show', 'carol']))).toMatchObject({ name: '@carol:localhost' })
    expect(await hearth(['user', 'show', 'nobody'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no account @nobody:localhost.'),
    })
  })

  test('registration tokens are made, listed and deleted', async () => {
    const token = (await done(['token', 'create', '--uses', '2', '--days', '7'])).trim()
    const path = `/_matrix/client/v1/register/m.login.registration_token/validity?token=${token}`
    expect(await api.call('GET', path)).toEqual({ valid: true })
    expect(await done(['token', 'list'])).toMatch(new RegExp(`${token} +0 +2 +\\d{4}-`))
    await done(['token', 'delete', token])
    expect(await api.call('GET', path)).toEqual({ valid: false })
  })

  test('rooms are listed, blocked and removed', async () => {
    const dora = await login(api, 'carol')
    const room = await createRoom(api, dora.token, { name: 'Doomed', room_alias_name: 'doomed' })
    await sendText(api, dora.token, room, '1', 'hello')
    expect(await done(['room', 'list', '--search', 'doomed'])).toContain(room)
    await done(['room', 'block', '#doomed:localhost'])
    await done(['room', 'unblock', room])
    expect(await done(['room', 'delete', room, '--block'])).toMatch(/is removed: 1 users were in it, \d+ rows are gone/)
    await expect(sendText(api, dora.token, room, '2', 'hello?')).rejects.toMatchObject({ status: 403 })
    expect(await hearth(['room', 'delete', room])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no room'),
    })
  })

  test('the index of messages is made again', async () => {
    expect(await done(['search', 'rebuild'])).toContain('100% of all events are indexed.')
    expect(await hearth(['search', 'again'])).toMatchObject({ code: 2 })
  })

  test('old messages of a room are removed, and the rest is sound', async () => {
    const { token } = await login(api, 'carol')
    const room = await createRoom(api, token, { name: 'Long' })
    for (const text of ['one', 'two', 'three']) await sendText(api, token, room, text, text)
    const last = await sendText(api, token, room, 'last', 'last')
    expect(await done(['room', 'purge-history', room, '--before', last])).toContain('0 events')
    expect(await done(['room', 'purge-history', room, '--before', last, '--local'])).toContain('3 events')
    expect(await done(['room', 'verify', room])).toMatch(/nothing|no finding|sound/i)
    expect(await hearth(['room', 'purge-history', room, '--before', 'once'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--before'),
    })
    expect(await hearth(['room', 'purge-history', room, '--before', '1999-12-31'])).toMatchObject({ code: 1 })
  })

  test('files are listed, hidden and removed', async () => {
    await done(['user', 'create', 'fred'], `${PASSWORD}\n`)
    const { token } = await login(api, 'fred')
    const name = await uploadFile(server.baseUrl, token, 'hello', { name: 'hello.txt', type: 'text/plain' })
    const show = () => fetchFile(`${server.baseUrl}/_matrix/client/v1/media/download/${name}`, { token })
    expect(await done(['media', 'list', 'fred'])).toMatch(/ 5 +text\/plain; charset=utf-8 +hello\.txt /)
    await done(['media', 'quarantine', `mxc://${name}`])
    expect((await show()).status).toBe(404)
    expect(await done(['media', 'delete', `mxc://${name}`])).toContain('1 file is removed')
  })

  test('an account ends', async () => {
    await done(['user', 'create', 'eve'], `${PASSWORD}\n`)
    const eve = await login(api, 'eve')
    expect(await isKnown(eve)).toBe(true)
    expect(await done(['user', 'deactivate', 'eve', '--erase'])).toContain('@eve:localhost is deactivated')
    expect(await isKnown(eve)).toBe(false)
    await expect(login(api, 'eve')).rejects.toMatchObject({ status: 403 })
    expect(await hearth(['user', 'make-admin', 'eve'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is deactivated'),
    })
  })

  test('a policy list is tried, followed and ended', async () => {
    const { token } = await login(api, 'fred')
    const room = await createRoom(api, token)
    const body = { entity: '@spam*:*', recommendation: 'm.ban', reason: '' }
    await api.call('PUT', `/rooms/${encodeURIComponent(room)}/state/m.policy.rule.user/a`, { token, body })
    expect(await done(['policy-list', 'show'])).toContain('follows no list')
    const effects = await done(['policy-list', 'try', room])
    expect(effects).toContain('Rules: 1 about users')
    expect(effects).toContain('2 accounts of this server:\n  @spam1:localhost\n')
    expect(await done(['policy-list', 'show'])).toContain('follows no list')
    expect(await done(['policy-list', 'follow', room])).toContain(`${room} is in force, with 1 rule.`)
    expect(await done(['policy-list', 'show'])).toContain(room)
    expect(await done(['policy-list', 'remove', room])).toContain('followed no more')
    expect(await hearth(['policy-list', 'try', '!none:localhost'])).toMatchObject({ code: 1 })
  })

  test('the signing key is replaced, and stays so after a kill', async () => {
    const published = async () => {
      const { verify_keys, old_verify_keys } = await api.call('GET', '/_matrix/key/v2/server')
      return { current: Object.keys(verify_keys), old: Object.keys(old_verify_keys) }
    }
    const { current } = await published()
    const [keyId = ''] = (await done(['keys', 'rotate'])).split(' ')
    const after = { current: [keyId], old: current }
    expect(await published()).toEqual(after)
    await server.kill('SIGKILL')
    await server.start()
    expect(await published()).toEqual(after)
    expect(await done(['keys', 'show'])).toMatch(new RegExp(`^${keyId} .*\\n${current[0]} .* \\(until 20`))
  })

  test('all of it is on the record', async () => {
    const acts = await done(['audit', '--target', '@bob:localhost'])
    expect(acts).toMatch(/command line +done +POST \/_synapse\/admin\/v1\/reset_password\/\{userId\} +@bob:localhost/)
    expect(await done(['audit', '--actor', 'command line', '--limit', '1000'])).toContain('user create')
    expect(acts).not.toContain('a third password')
  })

  test('another server at that address is told nothing', async () => {
    const { code, stderr } = await hearth(['user', 'logout', 'bob', '--set', 'listen.port=1'])
    expect([code, stderr]).toEqual([1, expect.stringContaining('the server runs, but not at http://127.0.0.1:1')])
  })
})

describe('without a server', () => {
  let bob: Account
  beforeAll(async () => {
    bob = await login(api, 'bob', 'a third password')
    await server.kill('SIGTERM')
  })

  test('the same is done, and counts when it starts', async () => {
    expect(await done(['user', 'list', '--name', 'bob'])).toContain('@bob:localhost')
    await done(['user', 'logout', 'bob'])
    await done(['user', 'make-admin', 'bob'])
    const [keyId] = (await done(['keys', 'rotate'])).split(' ')
    const token = (await done(['token', 'create', 'made-while-away'])).trim()
    await server.start()
    expect(await isKnown(bob)).toBe(false)
    expect(Object.keys((await api.call('GET', '/_matrix/key/v2/server')).verify_keys)).toEqual([keyId])
    const again = await login(api, 'bob', 'a third password')
    const path = `/_synapse/admin/v1/registration_tokens/${token}`
    expect(await api.call('GET', path, { token: again.token })).toMatchObject({ token })
  })

  test('a room is removed', async () => {
    const { token } = await login(api, 'bob', 'a third password')
    const room = await createRoom(api, token, { name: 'Doomed too' })
    await server.kill('SIGTERM')
    await done(['room', 'delete', room])
    await server.start()
    expect((await api.call('GET', '/joined_rooms', { token })).joined_rooms).toEqual([])
  })
})

test.each([
  ['user', 'say "create NAME"'],
  ['user logout', 'say "logout NAME"'],
  ['user list alice', 'say "create NAME", "list"'],
  ['token', 'say "create"'],
  ['token create --uses many', '--uses takes a number'],
  ['audit now', '"now" is not understood'],
  ['room delete', 'or "list", "delete ROOM"'],
])('%s is a wrong use, with advice', async (words, advice) => {
  const { code, stderr } = await hearth(words.split(' '))
  expect([code, stderr]).toEqual([2, expect.stringContaining(advice)])
})
