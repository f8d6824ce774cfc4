// The full metadata. The small set only checks a number's length by country, and does not know its kind. 157 KB on disk and 2.5 MB in
// memory are little for a server, and they are loaded with the first number.
import type { CountryCode, NumberType } from 'libphonenumber-js/max'
import { ProtocolError } from '../../core/errors.ts'

export interface PhoneNumber {
  /** Digits of E.164 without `+`: the address of a third-party identifier. */
  readonly msisdn: string
  /** As people write it: `+44 7911 123456`. */
  readonly international: string
  /** The number's country, in capitals; the country calling code if it has no country (`+800`). */
  readonly region: string
}

/** Messages to these would cost the receiver, or pay the receiver a share of the sender's cost. */
const COSTLY: ReadonlySet<NumberType> = new Set(['PREMIUM_RATE', 'SHARED_COST'])
/**
 * Britain reserves these for books and films, and the specification uses them as examples. They are no valid numbers, but no mistake
 * either.
 */
const FICTITIOUS = /^447700900\d{3}$/
const MAX_CHARS = 64
/** The characters that people put between digits. Letters are refused. */
const AS_DIALLED = /^\+?[0-9\s().\-/\u2010-\u2015]+$/

/**
 * Reads a number as dialled from `country` (identity service API, "Phone number verification").
 *
 * @param country two letters of ISO 3166-1, in either case
 * @throws ProtocolError `M_INVALID_PARAM` for an unknown country, `M_INVALID_ADDRESS` if it is no number
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
