declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  /** What is used of it here. */
  export class Provider {
    constructor(issuer: string, configuration: object)
    proxy: boolean
    callback(): RequestListener
    use(middleware: (context: Context, next: () => Promise<void>) => Promise<void>): void
    on(event: 'server_error', listener: (context: Context, error: Error) => void): void
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    readonly Client: { find(id: string): Promise<{ metadata(): Record<string, unknown> } | undefined> }
    readonly Grant: {
      new (parameters: object): Grant
      find(id: string): Promise<Grant | undefined>
    }
    readonly DeviceCode: { findByUserCode(userCode: string): Promise<DeviceCode | undefined> }
  }

  export interface Context {
    status: number
    body: unknown
    readonly ip: string
    readonly oidc: {
      readonly route: string | undefined
      readonly params: Readonly<Record<string, string | undefined>>
      readonly result: { readonly login?: object; readonly consent?: { readonly grantId?: string } } | undefined
      readonly entities: Readonly<Record<string, Token | undefined>>
    }
  }

  export interface Token {
    readonly accountId: string
    readonly clientId: string
    readonly grantId: string
    readonly scope?: string
  }

  export interface Interaction {
    readonly uid: string
    readonly params: Readonly<Record<string, string | undefined>>
    readonly returnTo: string
    readonly lastSubmission: object | undefined
    result: object | undefined
    persist(): Promise<unknown>
  }

  export interface Grant {
    readonly accountId: string
    readonly clientId: string
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }

  export interface DeviceCode {
    readonly clientId: string
    readonly params: Readonly<Record<string, string | undefined>>
    readonly deviceInfo: { readonly ip?: string; readonly ua?: string } | undefined
    readonly iat: number
    readonly isValid: boolean
    accountId?: string | undefined
    error?: string | undefined
    errorDescription?: string | undefined
    grantId?: string | undefined
    scope?: string | undefined
    resource?: string | undefined
    userCode?: string | undefined
    save(): Promise<string>
  }

  class OidcError extends Error {
    constructor(description?: string, detail?: string)
  }

  export const errors: {
    readonly InvalidGrant: typeof OidcError
    readonly InvalidRequest: typeof OidcError
    readonly InvalidScope: typeof OidcError
    readonly CustomOIDCProviderError: new (error: string, description: string) => Error
  }

  export const interactionPolicy: {
    readonly Check: new (
      reason: string,
      description: string,
      error: string,
      check: (context: Context) => boolean,
    ) => object
    readonly Prompt: new (parameters: { name: string; requestable: boolean }, ...checks: object[]) => object
  }
}
