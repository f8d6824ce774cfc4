import { describe, expect, it } from 'vitest'
import { claimMapping, suggestedName } from '../../src/domain/sso/claims.ts'

describe('claims of a provider', () => {
  it('become a user name, a display name and an address', () => {
    const claims = { preferred_username: 'Ada.L', name: ' Ada\nLovelace ', email: 'Ada@X.test', email_verified: true }
    expect(claimMapping({})(claims)).toEqual({ localpart: 'ada.l', displayName: 'Ada Lovelace', email: 'ada@x.test' })
  })

  it.each([
    ['nothing at all', {}],
    ['values of other types', { preferred_username: { a: 1 }, name: ['x'], email: true, email_verified: true }],
    ['no address', { email: 'not an address', email_verified: true }],
    ['an address that is not verified', { email: 'ada@x.test', email_verified: false }],
    ['an address that is called verified in words', { email: 'ada@x.test', email_verified: 'true' }],
  ])('may be %s', (_name, claims) => {
    expect(claimMapping({})(claims)).toEqual({ localpart: '', displayName: undefined, email: undefined })
  })

  it('go through templates of the operator', () => {
    const map = claimMapping({
      localpart: '{{email | localpart}}-{{number}}',
      display_name: '{{given_name}}{{#family_name}} {{family_name}}{{/family_name}}',
      email: '{{mail}}',
    })
    const claims = { email: 'Ada@x.test', number: 7, given_name: 'Ada', mail: 'ada@work.test', email_verified: true }
    expect(map(claims)).toEqual({ localpart: 'ada-7', displayName: 'Ada', email: 'ada@work.test' })
    expect(map({ ...claims, family_name: 'L' }).displayName).toBe('Ada L')
  })

  it.each([
    ['Zoë Müller', 'zoe.muller'],
    ['ada@x.test', 'ada.x.test'],
    ['__ada', 'ada'],
    ['日本', ''],
    ['', ''],
    ['x'.repeat(100), 'x'.repeat(64)],
  ])('%j is proposed as %j', (text, name) => expect(suggestedName(text)).toBe(name))
})
