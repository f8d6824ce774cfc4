//! A client that signs in by OAuth 2.0 or by a QR code. The person's browser is elsewhere: addresses go out to it, and
//! what it comes back with comes in.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures_util::StreamExt;
use matrix_sdk::{
    Client,
    authentication::oauth::{
        ClientRegistrationData,
        qrcode::{CheckCodeSender, GeneratedQrProgress, GrantLoginProgress, LoginProgress, QrCodeData, QrProgress},
        registration::{ApplicationType, ClientMetadata, Localized, OAuthGrantType},
    },
    config::RequestConfig,
    ruma::{OwnedDeviceId, api::client::discovery::get_authorization_server_metadata::v1::Prompt, serde::Raw},
    sliding_sync::VersionBuilder,
};
use serde_json::{Value, json};
use url::Url;

use crate::{Shared, text};

pub struct Newcomer {
    client: Client,
    qr: Shared<QrLogin>,
}

/// How far a sign-in by QR code is.
#[derive(Default)]
struct QrLogin {
    /// The code that the other device reads, in base64.
    shown: Option<String>,
    /// Two digits that a person carries from one device to the other.
    digits: Option<u8>,
    digits_wanted: Option<CheckCodeSender>,
    /// Where a person says that they want this.
    address: Option<Url>,
    outcome: Option<Result<(), String>>,
}

impl Newcomer {
    pub async fn new(request: &Value) -> Result<Self> {
        let client = Client::builder()
            .homeserver_url(text(request, "url")?)
            .sliding_sync_version_builder(VersionBuilder::DiscoverNative)
            .handle_refresh_tokens()
            // The certificate is one that nobody vouches for.
            .disable_ssl_verification()
            .request_config(RequestConfig::new().retry_limit(3))
            .build()
            .await?;
        Ok(Self { client, qr: Shared::default() })
    }

    pub async fn act(&mut self, act: &str, request: &Value) -> Result<Value> {
        let oauth = self.client.oauth();
        match act {
            "ask" => {
                let redirect = Url::parse(text(request, "redirect")?)?;
                let device = request["device"].as_str().map(OwnedDeviceId::from);
                let asking = oauth.login(redirect.clone(), device, Some(registration(redirect)?), None);
                let asking = match request["create"] == true {
                    true => asking.prompt(vec![Prompt::Create]),
                    false => asking,
                };
                Ok(json!({ "address": asking.build().await?.url }))
            }
            "finish" => {
                let answer = Url::parse(text(request, "answer")?)?;
                oauth.finish_login(answer.into()).await?;
                self.client.encryption().wait_for_e2ee_initialization_tasks().await;
                Ok(json!({ "user": self.client.user_id(), "device": self.client.device_id() }))
            }
            "whoami" => {
                let own = self.client.whoami().await?;
                Ok(json!({ "user": own.user_id, "device": own.device_id }))
            }
            "tokens" => Ok(json!(self.client.session_tokens())),
            "refresh" => {
                oauth.refresh_access_token().await?;
                Ok(Value::Null)
            }
            "sign-out" => {
                oauth.logout().await?;
                Ok(Value::Null)
            }
            "bootstrap" => {
                self.client.encryption().bootstrap_cross_signing(None).await?;
                Ok(Value::Null)
            }
            "is-verified" => {
                let own = self.client.encryption().get_own_device().await?.context("the device is not known")?;
                Ok(json!(own.is_cross_signed_by_owner()))
            }
            "show-code" => {
                tokio::spawn(help_in(self.client.clone(), Arc::clone(&self.qr)));
                Ok(Value::Null)
            }
            "read-code" => {
                let code = QrCodeData::from_base64(text(request, "code")?)?;
                let redirect = Url::parse(text(request, "redirect")?)?;
                tokio::spawn(enter_by(self.client.clone(), Arc::clone(&self.qr), code, registration(redirect)?));
                Ok(Value::Null)
            }
            "type-digits" => {
                let sender = self.qr.lock().unwrap().digits_wanted.take().context("no digits are wanted")?;
                let digits = request["digits"].as_u64().context("digits are missing")?;
                sender.send(u8::try_from(digits)?).await?;
                Ok(Value::Null)
            }
            "qr" => {
                let qr = self.qr.lock().unwrap();
                Ok(json!({
                    "shown": qr.shown,
                    "digits": qr.digits,
                    "areDigitsWanted": qr.digits_wanted.is_some(),
                    "address": qr.address,
                    "isDone": qr.outcome == Some(Ok(())),
                    "problem": qr.outcome.as_ref().and_then(|outcome| outcome.as_ref().err()),
                }))
            }
            other => bail!("nobody can {other}"),
        }
    }
}

/// What such an app says of itself.
fn registration(redirect: Url) -> Result<ClientRegistrationData> {
    let grants = vec![OAuthGrantType::AuthorizationCode { redirect_uris: vec![redirect] }, OAuthGrantType::DeviceCode];
    let home = Localized::new(Url::parse("https://app.example.com/")?, []);
    let mut metadata = ClientMetadata::new(ApplicationType::Native, grants, home);
    metadata.client_name = Some(Localized::new("A client in Rust".to_owned(), []));
    metadata.policy_uri = Some(Localized::new(Url::parse("https://app.example.com/policy")?, []));
    metadata.tos_uri = Some(Localized::new(Url::parse("https://app.example.com/terms")?, []));
    Ok(Raw::new(&metadata)?.into())
}

/// Shows a code, and lets in the device that reads it.
async fn help_in(client: Client, qr: Shared<QrLogin>) {
    let oauth = client.oauth();
    let granting = oauth.grant_login_with_qr_code().generate();
    let mut progress = granting.subscribe_to_progress();
    let shared = Arc::clone(&qr);
    tokio::spawn(async move {
        while let Some(state) = progress.next().await {
            let mut qr = shared.lock().unwrap();
            match state {
                GrantLoginProgress::EstablishingSecureChannel(GeneratedQrProgress::QrReady(code)) => {
                    qr.shown = Some(code.to_base64());
                }
                GrantLoginProgress::EstablishingSecureChannel(GeneratedQrProgress::QrScanned(sender)) => {
                    qr.digits_wanted = Some(sender);
                }
                GrantLoginProgress::WaitingForAuth { verification_uri } => qr.address = Some(verification_uri),
                _ => (),
            }
        }
    });
    let outcome = granting.await.map_err(|error| format!("{error:#}"));
    qr.lock().unwrap().outcome = Some(outcome);
}

/// Reads the code that another device shows, and signs in.
async fn enter_by(client: Client, qr: Shared<QrLogin>, code: QrCodeData, registration: ClientRegistrationData) {
    let oauth = client.oauth();
    let entering = oauth.login_with_qr_code(Some(&registration)).scan(&code);
    let mut progress = entering.subscribe_to_progress();
    let shared = Arc::clone(&qr);
    tokio::spawn(async move {
        while let Some(state) = progress.next().await {
            if let LoginProgress::EstablishingSecureChannel(QrProgress { check_code }) = state {
                shared.lock().unwrap().digits = Some(check_code.to_digit());
            }
        }
    });
    let outcome = entering.await.map_err(|error| format!("{error:#}"));
    qr.lock().unwrap().outcome = Some(outcome);
}
