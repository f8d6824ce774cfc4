import { describe, expect, it } from 'vitest'
import { CLIENT_API, SERVER_API } from '../support/interfaces.ts'
import { hasTest, textOf } from '../support/test-names.ts'
import { ERRORS, ROWS } from './rows.ts'

describe.each(Object.entries(ROWS))('each row of %s has its test', (_table, rows) => {
  it.each(rows)('%s: %s, %s', (_row, file, name) => {
    expect(hasTest(file, name)).toBe(true)
  })
})

/** All that the description of the client interface lists, common ones first. */
const LISTED = `M_FORBIDDEN M_UNKNOWN_TOKEN M_MISSING_TOKEN M_BAD_JSON M_NOT_JSON M_NOT_FOUND M_LIMIT_EXCEEDED M_UNKNOWN
  M_UNRECOGNIZED M_UNAUTHORIZED M_USER_DEACTIVATED M_USER_IN_USE M_INVALID_USERNAME M_ROOM_IN_USE M_INVALID_ROOM_STATE
  M_THREEPID_IN_USE M_THREEPID_NOT_FOUND M_THREEPID_AUTH_FAILED M_THREEPID_DENIED M_SERVER_NOT_TRUSTED
  M_UNSUPPORTED_ROOM_VERSION M_INCOMPATIBLE_ROOM_VERSION M_BAD_STATE M_GUEST_ACCESS_FORBIDDEN M_CAPTCHA_NEEDED
  M_CAPTCHA_INVALID M_MISSING_PARAM M_INVALID_PARAM M_TOO_LARGE M_EXCLUSIVE M_RESOURCE_LIMIT_EXCEEDED
  M_CANNOT_LEAVE_SERVER_NOTICE_ROOM M_WEAK_PASSWORD`.split(/\s+/)

describe('each errcode of "Errors" has its test', () => {
  it.each(ERRORS)('%s of %s: %s, %s', (errcode, _operation, file, name) => {
    expect(hasTest(file, name)).toBe(true)
    expect(textOf(file)).toContain(errcode)
  })

  it('and none is missing', () => {
    expect(ERRORS.map(([errcode]) => errcode)).toEqual(LISTED)
  })

  it('of operations that there are', () => {
    const lines = [...CLIENT_API, ...SERVER_API].map(({ method, path }) => `${method} ${path}`)
    const named = ERRORS.map(([, operation]) => operation).filter((operation) => !operation.startsWith('every'))
    expect(named.filter((operation) => !lines.includes(operation))).toEqual([])
  })
})
