import { describe, expect, it, test } from 'vitest'
import { ProtocolError } from '../../../src/core/errors.ts'
import { readPhoneNumber } from '../../../src/domain/identity/phone-numbers.ts'
import { COUNTRIES } from '../phone-number-corpus.ts'

async function codeOf(country: string, number: string): Promise<string> {
  try {
    return (await readPhoneNumber(country, number)).msisdn
  } catch (error) {
    return error instanceof ProtocolError ? error.errcode : String(error)
  }
}

describe('a number as dialled', () => {
  it.each(COUNTRIES)('in %s: %s is %s', async (country, dialled, msisdn, bad) => {
    expect(await readPhoneNumber(country, dialled)).toMatchObject({ msisdn, region: country })
    expect(await codeOf(country.toLowerCase(), dialled)).toBe(msisdn)
    // The international form means the same from anywhere.
    expect(await codeOf('FR', `+${msisdn}`)).toBe(msisdn)
    expect(await codeOf(country, bad)).toBe('M_INVALID_ADDRESS')
  })
})

test("the specification's example is accepted, though nobody has that number", async () => {
  expect(await readPhoneNumber('GB', '07700900001')).toEqual({
    msisdn: '447700900001',
    international: '+44 7700 900001',
    region: 'GB',
  })
  expect(await codeOf('US', '1 800 555 2067')).toBe('18005552067')
})

describe('no number is', () => {
  it.each([
    ['GB', ''],
    ['GB', '0'],
    ['GB', 'call me'],
    ['US', '1-800-FLOWERS'],
    ['GB', '07400 123456\n07400 123457'.replace('\n', ';')],
    ['GB', '07400 123456 ext. 12'],
    ['GB', 'tel:+447400123456'],
    ['GB', '+'],
    ['GB', '++447400123456'],
    ['GB', '+447400123456+'],
    ['GB', '٠٧٤٠٠١٢٣٤٥٦'],
    ['GB', `07400123456${'0'.repeat(500)}`],
    ['GB', '07400\x0a3456'],
    ['DE', '0900 1 234567'],
    ['GB', '0909 879 0000'],
    ['FR', '+999 123 456 789'],
  ])('from %s: %j', async (country, number) => expect(await codeOf(country, number)).toBe('M_INVALID_ADDRESS'))
})

it.each(['', 'XX', 'GBR', 'G', 'gb ', '44', '__proto__', 'constructor', 'ZZ'])('%j is no country', async (country) => {
  expect(await codeOf(country, '07400 123456')).toBe('M_INVALID_PARAM')
})
