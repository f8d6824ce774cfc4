import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { foldCase, isEmailAddress, isMedium, normaliseAddress } from '../../src/core/threepid.ts'

describe('an email address', () => {
  it.each([
    'alice@example.org',
    'Alice@Example.ORG',
    'alice+tag@example.org',
    "o'hara!#$%&*/=?^_`{|}~-@example.org",
    'first.last@mail.example.co.uk',
    'strauß@example.com',
    'ユーザー@例え.jp',
    'иван@почта.рф',
    'root@localhost',
    'a@xn--bcher-kva.example',
    '1@1a.example',
    `${'a'.repeat(64)}@example.org`,
  ])('may be %j', (text) => expect(isEmailAddress(text)).toBe(true))

  const bad: [string, string][] = [
    ['', 'nothing'],
    ['alice', 'no @'],
    ['@example.org', 'nothing before the @'],
    ['alice@', 'nothing after the @'],
    ['a@b@c', 'two @'],
    ['a@evil.example@good.example', 'two @: another address'],
    ['alice@example.org\n', 'a trailing newline'],
    ['alice@example.org\r\nBcc: all@example.org', 'a header'],
    ['al\u0000ice@example.org', 'NUL'],
    ['al\u007fice@example.org', 'DEL'],
    ['alice@exam\u0085ple.org', 'a C1 control'],
    ['al ice@example.org', 'a space'],
    [' alice@example.org', 'a leading space'],
    ['alice@example.org ', 'a trailing space'],
    ['al\u00a0ice@example.org', 'a space that does not break'],
    ['al\u200bice@example.org', 'a space of no width'],
    ['al\u202eice@example.org', 'writing turned around'],
    ['a@b.example,c@d.example', 'two addresses'],
    ['a@b.example;c@d.example', 'two addresses'],
    ['Alice <alice@example.org>', 'a display name'],
    ['<alice@example.org>', 'angle brackets'],
    ['mailto:alice@example.org', 'a scheme'],
    ['"al ice"@example.org', 'a quoted string'],
    ['al\\ice@example.org', 'a backslash'],
    ['alice(comment)@example.org', 'a comment'],
    ['.alice@example.org', 'a leading dot'],
    ['alice.@example.org', 'a trailing dot'],
    ['al..ice@example.org', 'two dots'],
    ['alice@.example.org', 'an empty label'],
    ['alice@example..org', 'an empty label'],
    ['alice@example.org.', 'a root'],
    ['alice@-example.org', 'a leading hyphen'],
    ['alice@example-.org', 'a trailing hyphen'],
    ['alice@exam_ple.org', 'an underscore in the domain'],
    ['alice@[127.0.0.1]', 'an address literal'],
    ['alice@127.0.0.1', 'an IP address'],
    ['alice@example.org/path', 'a path'],
    ['alice@example.org?cc=b', 'a query'],
    ['alice@example.org%0d%0aX', 'escapes in the domain'],
    ['alice@example。org', 'a dot that is not one'],
    ['alice@ｅｘａｍｐｌｅ.org', 'full-width letters'],
    ['alice＠example.org', 'an @ that is not one'],
    [`${'a'.repeat(65)}@example.org`, '65 characters before the @'],
    [`a@${'b'.repeat(64)}.org`, 'a label of 64'],
    [`a@${'bcd.'.repeat(70)}org`, 'more than 254 characters'],
    [`${'a'.repeat(488)}@example.org`, '500 characters'],
    [`a@${'é'.repeat(63)}.${'é'.repeat(63)}.org`, 'more than 254 octets'],
    ['\ud800@example.org', 'half a character'],
  ]
  it.each(bad)('is not %j (%s)', (text) => expect(isEmailAddress(text)).toBe(false))

  test('is none when anything is added that separates addresses', () => {
    const separator = fc.constantFrom('@', ',', ';', ' ', '<', '>', '\r', '\n', '\t', '\0', '"', '(', ')', ':', '\\')
    fc.assert(
      fc.property(separator, fc.nat(17), (char, at) => {
        const text = 'alice@example.org'
        expect(isEmailAddress(text.slice(0, at) + char + text.slice(at))).toBe(false)
      }),
    )
  })
})

describe('case folding', () => {
  it.each([
    ['Strauß@Example.com', 'strauss@example.com'],
    ['ΑΣ@example.org', 'ας@example.org'.replace('ς', 'σ')],
    ['ας@example.org', 'ασ@example.org'],
    ['ı@example.org', 'ı@example.org'],
    ['İ@example.org', 'i̇@example.org'],
    ['ﬀ@example.org', 'ff@example.org'],
    ['ſ@example.org', 's@example.org'],
    ['K@example.org', 'k@example.org'],
    ['µ@example.org', 'μ@example.org'],
    ['ꭰ@example.org', 'Ꭰ@example.org'],
    ['ᏸ@example.org', 'Ᏸ@example.org'],
    ['Alice+Tag@EXAMPLE.org', 'alice+tag@example.org'],
    ['𐐀@example.org', '𐐨@example.org'],
  ])('makes %j %j', (text, folded) => expect(foldCase(text)).toBe(folded))

  test('is done once', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(foldCase(foldCase(text))).toBe(foldCase(text))
      }),
    )
  })

  test('does not tell upper from lower case', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(foldCase(text.toUpperCase())).toBe(foldCase(text))
      }),
    )
  })

  test('keeps the number of @', () => {
    const count = (text: string) => text.split('@').length
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(count(foldCase(text))).toBe(count(text))
      }),
      { numRuns: 1000 },
    )
  })
})

test('an address is an address still once it is folded', () => {
  for (const address of ['Strauß@Example.com', 'ŉ@example.org', 'ΐ@example.org', 'İ@example.org']) {
    expect(isEmailAddress(normaliseAddress('email', address)), address).toBe(true)
  }
})

test('a phone number is its digits', () => {
  expect(normaliseAddress('msisdn', '+1 (800) 555-2067')).toBe('18005552067')
  expect(normaliseAddress('msisdn', '18005552067')).toBe('18005552067')
  expect(normaliseAddress('msisdn', 'call me')).toBe('callme')
})

test('A9: what is longer than any address is not folded', () => {
  const long = 'A'.repeat(900_000)
  expect(normaliseAddress('email', long)).toBe(long)
  expect(isEmailAddress(long)).toBe(false)
})

test('other media are left alone, and are no media', () => {
  expect(normaliseAddress('carrier-pigeon', 'Ärger')).toBe('Ärger')
  expect(['email', 'msisdn', 'Email', 'constructor', undefined].map(isMedium)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ])
})
