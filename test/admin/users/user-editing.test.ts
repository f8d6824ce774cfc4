import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRoom, login } from '../../support/api.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office
beforeAll(async () => {
  office = await openOffice()
})
afterAll(() => office.close())

const at = (name: string) => `/v2/users/@${name}:localhost`
const put = (name: string, body: object) => office.ask('PUT', at(name), body)

describe('an account that is not there', () => {
  test('is made, with all that is said of it', async () => {
    const { status, body } = await put('made', {
      password: 'a password of some length',
      displayname: 'Made By Hand',
      avatar_url: 'mxc://localhost/abc',
      admin: true,
      threepids: [
        { medium: 'email', address: 'Made@Example.ORG' },
        { medium: 'msisdn', address: '447470274584' },
      ],
      external_ids: [{ auth_provider: 'oidc', external_id: '12345' }],
      deactivated: false,
      user_type: null,
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      name: '@made:localhost',
      displayname: 'Made By Hand',
      avatar_url: 'mxc://localhost/abc',
      admin: true,
      external_ids: [{ auth_provider: 'oidc', external_id: '12345' }],
    })
    expect(body.threepids.map(({ address }: { address: string }) => address).sort()).toEqual([
      '447470274584',
      'made@example.org',
    ])
    const { token } = await login(office.api, 'made', 'a password of some length')
    expect((await office.ask('GET', '/v2/users?limit=1', undefined, token)).status).toBe(200)
  })

  test('can be without a password, and then nobody logs in by one', async () => {
    expect((await put('silent', {})).status).toBe(201)
    await expect(login(office.api, 'silent', '')).rejects.toMatchObject({ status: 403 })
  })

  test.each([
    ['UPPER', {}, 'M_INVALID_USERNAME'],
    ['with space', {}, 'M_INVALID_USERNAME'],
    ['weak', { password: 'x' }, 'M_WEAK_PASSWORD'],
    ['wrong-1', { threepids: [{ medium: 'email', address: 'not an address' }] }, 'M_INVALID_PARAM'],
    ['wrong-2', { threepids: [{ medium: 'msisdn', address: 'many' }] }, 'M_INVALID_PARAM'],
    ['wrong-3', { threepids: [{ medium: 'fax', address: '1' }] }, 'M_INVALID_PARAM'],
    ['wrong-4', { external_ids: [{ auth_provider: 'a\0', external_id: 'x' }] }, 'M_INVALID_PARAM'],
    ['wrong-5', { user_type: 'bot' }, 'M_INVALID_PARAM'],
    ['wrong-6', { admin: 'yes' }, 'M_BAD_JSON'],
  ])('%s %j makes none', async (name, body, errcode) => {
    const answer = await office.ask('PUT', `/v2/users/${encodeURIComponent(`@${name}:localhost`)}`, body)
    expect(answer.body.errcode).toBe(errcode)
    expect((await office.ask('GET', `/v2/users/${encodeURIComponent(`@${name}:localhost`)}`)).status).toBe(404)
  })

  test('of another server is made by nobody here', async () => {
    expect((await office.ask('PUT', '/v2/users/@x:other.example', {})).body.errcode).toBe('M_INVALID_PARAM')
  })

  test('is made by one of many who make it at once', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => put('raced', { admin: false })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const { status } of answers) expect([200, 201, 400]).toContain(status)
  })
})

describe('an account that is there', () => {
  test('changes in what is said, and in nothing else', async () => {
    const alice = await office.person('alice')
    const room = await createRoom(office.api, alice.token)
    const { status, body } = await put('alice', {
      displayname: 'Alice',
      threepids: [{ medium: 'email', address: 'a@b.cd' }],
    })
    expect([status, body.displayname, body.threepids.length]).toEqual([200, 'Alice', 1])
    const members = await office.api.call('GET', `/rooms/${encodeURIComponent(room)}/joined_members`, {
      token: alice.token,
    })
    expect(members.joined[alice.userId].display_name).toBe('Alice')
    expect((await put('alice', { displayname: '' })).body).toMatchObject({ displayname: null, admin: false })
    expect((await put('alice', {})).body.threepids).toHaveLength(1)
    expect((await put('alice', { threepids: [{ medium: 'email', address: 'c@d.ef' }] })).body.threepids).toMatchObject([
      { address: 'c@d.ef' },
    ])
    expect((await put('alice', { threepids: [] })).body.threepids).toEqual([])
    expect((await office.api.request('GET', '/account/whoami', { token: alice.token })).status).toBe(200)
  })

  test('gets another password, and is logged out unless that is not wished', async () => {
    const bob = await office.person('bob')
    await put('bob', { password: 'another password', logout_devices: false })
    expect((await office.api.request('GET', '/account/whoami', { token: bob.token })).status).toBe(200)
    await put('bob', { password: 'a third password' })
    expect((await office.api.request('GET', '/account/whoami', { token: bob.token })).status).toBe(401)
    await login(office.api, 'bob', 'a third password')
  })

  test('is found by its addresses and its external ids, which no other gets', async () => {
    const found = (path: string) => office.ask('GET', path)
    await put('carol', {
      threepids: [{ medium: 'email', address: 'carol@example.org' }],
      external_ids: [{ auth_provider: 'oidc', external_id: 'sub/carol' }],
    })
    await put('dora', {})
    expect((await put('dora', { threepids: [{ medium: 'email', address: 'CAROL@example.org' }] })).body.errcode).toBe(
      'M_THREEPID_IN_USE',
    )
    const taken = await put('dora', { external_ids: [{ auth_provider: 'oidc', external_id: 'sub/carol' }] })
    expect([taken.status, taken.body.errcode]).toEqual([409, 'M_UNKNOWN'])
    const user_id = '@carol:localhost'
    expect((await found('/v1/threepid/email/users/Carol%40example.org')).body).toEqual({ user_id })
    expect((await found('/v1/auth_providers/oidc/users/sub%2Fcarol')).body).toEqual({ user_id })
    expect((await found('/v1/threepid/email/users/x%40example.org')).status).toBe(404)
    expect((await found('/v1/auth_providers/oidc/users/x')).status).toBe(404)
  })

  test('of an administrator is not demoted by its owner', async () => {
    expect((await put('boss', { admin: false })).body.errcode).toBe('M_FORBIDDEN')
  })
})

test('a login on behalf of a user ends when it was said to', async () => {
  const eve = await office.person('eve')
  const at = `/v1/users/${eve.userId}/login`
  const { access_token: ended } = await office.call('POST', at, { valid_until_ms: Date.now() - 1 })
  expect((await office.api.request('GET', '/account/whoami', { token: ended })).status).toBe(401)
  const { access_token: token } = await office.call('POST', at, { valid_until_ms: Date.now() + 60_000 })
  expect((await office.api.request('GET', '/account/whoami', { token })).status).toBe(200)
})
