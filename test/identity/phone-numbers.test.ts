import { describe, expect, it, test } from 'vitest'
import { ProtocolError } from '../../src/core/errors.ts'
import { readPhoneNumber } from '../../src/domain/identity/phone-numbers.ts'

function codeOf(country: string, number: string): string {
  try {
    return readPhoneNumber(country, number).msisdn
  } catch (error) {
    return error instanceof ProtocolError ? error.errcode : String(error)
  }
}

/** Country, a number as dialled there, its digits of E.164, and a number that is none there. */
const COUNTRIES: readonly (readonly [string, string, string, string])[] = [
  ['AE', '050 123 4567', '971501234567', '050 123'],
  ['AR', '011 15-2345-6789', '5491123456789', '000 0000'],
  ['AT', '0664 123456', '43664123456', '0664 1'],
  ['AU', '0412 345 678', '61412345678', '0412 345 6789 0'],
  ['BE', '0450 00 12 34', '32450001234', '0450 00 12'],
  ['BR', '(11) 96123-4567', '5511961234567', '(11) 0123-456'],
  ['CA', '(506) 234-5678', '15062345678', '(506) 134-567'],
  ['CH', '078 123 45 67', '41781234567', '078 123 45 67 89'],
  ['CN', '131 2345 6789', '8613123456789', '131 2345'],
  ['CZ', '601 123 456', '420601123456', '601 123'],
  ['DE', '01512 3456789', '4915123456789', '01512'],
  ['DK', '34 41 23 45', '4534412345', '34 41 23'],
  ['EG', '010 01234567', '201001234567', '010 0123'],
  ['ES', '612 34 56 78', '34612345678', '012 34 56 78'],
  ['FI', '041 2345678', '358412345678', '041'],
  ['FR', '06 12 34 56 78', '33612345678', '06 12 34 56'],
  ['GB', '07400 123456', '447400123456', '07400 12345678'],
  ['GR', '691 234 5678', '306912345678', '191 234 5678'],
  ['ID', '0812-345-678', '62812345678', '0812'],
  ['IE', '085 012 3456', '353850123456', '085 012'],
  ['IL', '050-234-5678', '972502345678', '050-234'],
  ['IN', '081234 56789', '918123456789', '081234'],
  ['IT', '312 345 6789', '393123456789', '312'],
  ['JP', '090-1234-5678', '819012345678', '090-1234'],
  ['KE', '0712 123456', '254712123456', '0712 12'],
  ['KR', '010-2000-0000', '821020000000', '010-2000'],
  ['MX', '222 123 4567', '522221234567', '222 123'],
  ['NG', '0802 123 4567', '2348021234567', '0802 123'],
  ['NL', '06 12345678', '31612345678', '06 1234567890'],
  ['NO', '40 61 23 45', '4740612345', '40 61 23'],
  ['PL', '512 345 678', '48512345678', '512 345'],
  ['PT', '912 345 678', '351912345678', '912 345'],
  ['RU', '8 (912) 345-67-89', '79123456789', '8 (912) 345'],
  ['SE', '070-123 45 67', '46701234567', '070-123'],
  ['SG', '8123 4567', '6581234567', '8123'],
  ['TR', '0501 234 56 78', '905012345678', '0501'],
  ['UA', '050 123 4567', '380501234567', '050 123'],
  ['US', '(201) 555-0123', '12015550123', '(201) 055-0123'],
  ['ZA', '071 123 4567', '27711234567', '071 123'],
]

describe('a number as dialled', () => {
  it.each(COUNTRIES)('in %s: %s is %s', (country, dialled, msisdn, bad) => {
    expect(readPhoneNumber(country, dialled)).toMatchObject({ msisdn, region: country })
    expect(codeOf(country.toLowerCase(), dialled)).toBe(msisdn)
    // The international form means the same from anywhere.
    expect(codeOf('FR', `+${msisdn}`)).toBe(msisdn)
    expect(codeOf(country, bad)).toBe('M_INVALID_ADDRESS')
  })
})

test("the specification's example is accepted, though nobody has that number", () => {
  expect(readPhoneNumber('GB', '07700900001')).toEqual({
    msisdn: '447700900001',
    international: '+44 7700 900001',
    region: 'GB',
  })
  expect(codeOf('US', '1 800 555 2067')).toBe('18005552067')
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
  ])('from %s: %j', (country, number) => expect(codeOf(country, number)).toBe('M_INVALID_ADDRESS'))
})

it.each(['', 'XX', 'GBR', 'G', 'gb ', '44', '__proto__', 'constructor', 'ZZ'])('%j is no country', (country) => {
  expect(codeOf(country, '07400 123456')).toBe('M_INVALID_PARAM')
})
