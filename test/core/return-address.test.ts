import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isReturnAddress, isUnderOneOf, nameOfAddress, withLoginToken } from '../../src/core/return-address.ts'

// What is refused is in the table of test/sso/attacks.long.test.ts.
describe('the address of a client', () => {
  it.each([
    ['https://app.example.org/', 'app.example.org'],
    ['http://localhost:8080/#/login', 'localhost:8080'],
    ['https://[::1]:8080/app?a=b', '[::1]:8080'],
    ['https://app.example.org/path@with', 'app.example.org'],
    ['element://connect', 'element'],
    ['io.element.app:/callback', 'io.element.app'],
    ['im.fluffychat://login', 'im.fluffychat'],
  ])('may be %s', (address, name) => {
    expect(isReturnAddress(address)).toBe(true)
    expect(nameOfAddress(address)).toBe(name)
  })

  it.each([
    ['https://a.test', 'https://a.test/?loginToken=t'],
    ['https://a.test/x?y=z', 'https://a.test/x?y=z&loginToken=t'],
    ['https://a.test/x?loginToken=old&y=z', 'https://a.test/x?y=z&loginToken=t'],
    ['https://a.test/#/login?y=z', 'https://a.test/?loginToken=t#/login?y=z'],
    ['element://connect', 'element://connect?loginToken=t'],
    ['io.element.app:/callback?x=1', 'io.element.app:/callback?x=1&loginToken=t'],
  ])('%s with a token is %s', (address, expected) => expect(withLoginToken(address, 't')).toBe(expected))

  it('stays on its site whatever it says, and says the token once', () => {
    const address = fc.webUrl({ withQueryParameters: true, withFragments: true })
    fc.assert(
      fc.property(address, fc.stringMatching(/^[\w-]{1,20}$/), (text, token) => {
        fc.pre(isReturnAddress(text))
        const [before, after] = [new URL(text), new URL(withLoginToken(text, token))]
        expect([after.origin, after.pathname, after.hash]).toEqual([before.origin, before.pathname, before.hash])
        expect(after.searchParams.getAll('loginToken')).toEqual([token])
      }),
    )
  })

  it('is never one that a browser would run, read or repair', () => {
    const texts = fc.oneof(
      fc.string(),
      fc.webUrl(),
      fc.stringMatching(/^(java|data|https?|element):?[/\\]{0,3}[ -~]{0,20}$/),
    )
    fc.assert(
      fc.property(texts, (text) => {
        fc.pre(isReturnAddress(text))
        const url = new URL(text)
        expect(['javascript:', 'data:', 'file:', 'blob:']).not.toContain(url.protocol)
        expect([url.username, url.password]).toEqual(['', ''])
        if (/^https?:$/.test(url.protocol)) expect(text.toLowerCase().startsWith(`${url.protocol}//`)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  it('lies under a prefix only with all of its path', () => {
    expect(isUnderOneOf('https://a.test/x/y', [])).toBe(false)
    expect(isUnderOneOf('https://a.test/x/y', ['https://b.test/', 'https://a.test'])).toBe(true)
    expect(isUnderOneOf('https://a.test/xy', ['https://a.test/x'])).toBe(false)
    expect(isUnderOneOf('element://connect/x', ['element://connect'])).toBe(true)
  })
})
