// The full metadata: with the small set a number only has to be as long as numbers of its country are, and its kind is not known.
// 157 KB on disk and 2.5 MB in memory are little for a server.
// They are loaded with the first number that somebody gives.
import type { CountryCode, NumberType } from 'libphonenumber-js/max'
import { ProtocolError } from '../../core/errors.ts'

export interface PhoneNumber {
  /** Digits of E.164 without `+`: the address of a third-party identifier. */
  readonly msisdn: string
  /** As people write it: `+44 7911 123456`. */
  readonly international: string
  /** Where the number is, in capitals; the country calling code where that is no country (`+800`). */
  readonly region: string
}

/** Nobody is sent a message that costs its receiver, or the sender a share of what it costs. */
const COSTLY: ReadonlySet<NumberType> = new Set(['PREMIUM_RATE', 'SHARED_COST'])
/** Britain keeps these for books and films, and the specification for its examples: no valid numbers, but no mistake either. */
const FICTITIOUS = /^447700900\d{3}$/
const MAX_CHARS = 64
/** What people put between digits. Letters are refused: a number is not to be spelled. */
const AS_DIALLED = /^\+?[0-9\s().\-/\u2010-\u2015]+$/

/**
 * Reads a number as it would be dialled from `country` (identity service API, "Phone number verification").
 *
 * @param country two letters of ISO 3166-1, in either case
 * @throws ProtocolError `M_INVALID_PARAM` for an unknown country, `M_INVALID_ADDRESS` for what is no number
 */
export async function readPhoneNumber(country: string, number: string): Promise<PhoneNumber> {
  const { isSupportedCountry, parsePhoneNumberFromString } = await import('libphonenumber-js/max')
  const from = country.toUpperCase()
  if (!isSupportedCountry(from)) throw new ProtocolError('M_INVALID_PARAM', "Key 'country' is not a country's code.")
  const parsed =
    number.length <= MAX_CHARS && AS_DIALLED.test(number)
      ? parsePhoneNumberFromString(number, { defaultCountry: from as CountryCode, extract: false })
      : undefined
  const msisdn = parsed?.number.slice(1) ?? ''
  if (parsed === undefined || !(parsed.isValid() || FICTITIOUS.test(msisdn)) || COSTLY.has(parsed.getType())) {
    throw new ProtocolError('M_INVALID_ADDRESS', `This is not a phone number that can be reached from ${from}.`)
  }
  return { msisdn, international: parsed.formatInternational(), region: parsed.country ?? parsed.countryCallingCode }
}
