import { afterAll, beforeAll, expect, test } from 'vitest'
import { mapConcurrently, register } from '../../support/api.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office
beforeAll(async () => {
  office = await openOffice({ registration: { enabled: false } })
})
afterAll(() => office.close())

const AT = '/v1/registration_tokens'

test('a token is made, shown, changed and deleted', async () => {
  const made = await office.call('POST', `${AT}/new`, { token: 'abcd', uses_allowed: 3 })
  expect(made).toEqual({ token: 'abcd', uses_allowed: 3, pending: 0, completed: 0, expiry_time: null })
  await register(office.api, 'invited', 'abcd')
  expect(await office.call('GET', `${AT}/abcd`)).toEqual({ ...made, completed: 1 })
  const expiry_time = Date.now() + 1_000_000
  expect(await office.call('PUT', `${AT}/abcd`, { expiry_time })).toEqual({ ...made, completed: 1, expiry_time })
  expect(await office.call('PUT', `${AT}/abcd`, { uses_allowed: null })).toMatchObject({
    uses_allowed: null,
    expiry_time,
  })
  expect(await office.call('PUT', `${AT}/abcd`, { uses_allowed: 0, expiry_time: null })).toMatchObject({
    uses_allowed: 0,
    expiry_time: null,
  })
  await expect(register(office.api, 'too-late', 'abcd')).rejects.toThrow()
  expect(await office.call('DELETE', `${AT}/abcd`)).toEqual({})
  expect((await office.ask('GET', `${AT}/abcd`)).status).toBe(404)
})

test('one that is not chosen is random, of the length that is wanted', async () => {
  const { token } = await office.call('POST', `${AT}/new`, {})
  expect(token).toMatch(/^[A-Za-z0-9._~-]{16}$/)
  expect((await office.call('POST', `${AT}/new`, { length: 64 })).token).toHaveLength(64)
})

test('the list can be of usable ones, or of the others', async () => {
  await office.call('POST', `${AT}/new`, { token: 'usable' })
  await office.call('POST', `${AT}/new`, { token: 'used-up', uses_allowed: 0 })
  const tokens = async (query: string): Promise<string[]> =>
    (await office.call('GET', AT + query)).registration_tokens.map(({ token }: { token: string }) => token)
  expect(await tokens('?valid=true')).toEqual(expect.arrayContaining(['usable']))
  expect(await tokens('?valid=true')).not.toContain('used-up')
  expect(await tokens('?valid=false')).toEqual(expect.arrayContaining(['used-up']))
  expect(await tokens('')).toEqual(expect.arrayContaining(['usable', 'used-up']))
})

test.each([
  [{ token: 'with spaces' }],
  [{ token: '' }],
  [{ token: 'x'.repeat(65) }],
  [{ token: 'a\0b' }],
  [{ length: 0 }],
  [{ length: 65 }],
  [{ uses_allowed: -1 }],
  [{ uses_allowed: 2 ** 40 }],
  [{ expiry_time: 1 }],
])('%j makes none', async (body) => {
  expect(await office.ask('POST', `${AT}/new`, body)).toMatchObject({
    status: 400,
    body: { errcode: 'M_INVALID_PARAM' },
  })
})

test('of many who make the same one, one does', async () => {
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => office.ask('POST', `${AT}/new`, { token: 'race' })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(400)])
})

test('what is not there is not found', async () => {
  for (const [method, body] of [['GET'], ['PUT', {}], ['DELETE']] as const) {
    for (const token of ['none', 'not%20one', '%00']) {
      const { status } = await office.ask(method, `${AT}/${token}`, body)
      expect([404, 400], `${method} ${token}`).toContain(status)
    }
  }
})

test('200 parallel uses of a token with 10 uses make 10 accounts', async () => {
  await office.call('POST', `${AT}/new`, { token: 'crowd', uses_allowed: 10 })
  const people = Array.from({ length: 200 }, (_, index) => `crowd-${index}`)
  const made = await mapConcurrently(people, 50, (name) =>
    register(office.api, name, 'crowd').then(
      () => true,
      () => false,
    ),
  )
  expect(made.filter(Boolean)).toHaveLength(10)
  expect((await office.call('GET', `${AT}/crowd`)).completed).toBe(10)
})
