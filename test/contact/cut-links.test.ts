import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer

beforeAll(async () => {
  server = await startServer()
})

afterAll(() => server.close())

const PATHS = [
  '/_matrix/identity/v2/validate/email/submitToken',
  '/_proto/identity/v2/validate/email/submitToken',
  '/_matrix/identity/api/v1/validate/email/submitToken',
  '/_matrix/identity/v2/validate/msisdn/submitToken',
  '/_matrix/identity/api/v1/validate/msisdn/submitToken',
  '/_matrix/client/unstable/hearth/validate/register/email/submitToken',
  '/_matrix/client/unstable/hearth/validate/password/email/submitToken',
]

const CUT = [
  '',
  '?sid=abc',
  '?sid=abc&client_secret=secret',
  '?sid=abc&client_secret=secret&token=',
  '?sid=a%20b&token=c',
]

test.each(PATHS)('C3: a truncated link to %s shows its page, not JSON', async (path) => {
  for (const query of CUT) {
    const answer = await fetch(`${server.baseUrl}${path}${query}`, { headers: { 'accept-language': 'en' } })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8'])
    const page = await answer.text()
    expect(page).toContain('This link is not known here')
    expect(page).toContain('It may be cut off')
  }
})
