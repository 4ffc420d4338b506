//! Tests with keys and signatures that ssh-keygen made. Real runs of ssh-keygen and FIDO signatures are in
//! tests/e2e/rules/authority/keys.rs.

use ssh_key::public::{Ed25519PublicKey, SkEd25519};

use super::*;

const ED25519: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPyFDYNVexhN8d1XE05aiRu47suJ0zFgPhReueWtnL9L jo@example";
const P256: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBDZdit2r0ZkB9yldZEf+OOb1HzNTvG/HakKy+iU5N/CBB5XGsHz5on3CarbrlqpYeEQK3PEPhtpEnUhenXwKmtY=";
const P384: &str = "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBEt2nS2ws9ZX3kwLxaq/zKnR7sq1LI3go4sfF1FDgzTRohzk4/cEHwPC91yl6QA92AqC8hcyeWMMVA7G/o+DUV/d7/f9Vg41m7jY8lMoyFo8bbFoORsaBpz/yTyJbq1rfA==";
const MESSAGE: &[u8] = b"hello\n";
const NAMESPACE: &str = "hiveforge-operator-v1";
const SIGNATURE: &str = "\
-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg/IUNg1V7GE3x3VcTTlqJG7juy4
nTMWA+FF655a2cv0sAAAAVaGl2ZWZvcmdlLW9wZXJhdG9yLXYxAAAAAAAAAAZzaGE1MTIA
AABTAAAAC3NzaC1lZDI1NTE5AAAAQN5kl8rsxxhQs74e+HXr3YZ8Djao+c+9b7BnE+cSIC
GPnQY2fXCBmG+PRQF82kKF2nlNn8lj0+5MYqrHG5mkFQk=
-----END SSH SIGNATURE-----
";

fn line(data: KeyData) -> String {
    PublicKey::from(data).to_openssh().unwrap()
}

#[test]
fn keys_read_back_as_written() {
    for (text, key_type, comment, fingerprint) in [
        (ED25519, KeyType::Ed25519, "jo@example", "SHA256:HxJkKXIc9eeJzKIlub6el//d9KQdmSVZzI1+ehbBxqg"),
        (P256, KeyType::EcdsaP256, "", "SHA256:mowpEM1ExVxShlojDByJwbPsocM/BT3qx4+mBOZ7Hqs"),
    ] {
        let key = OperatorKey::parse(text).unwrap();
        assert_eq!((key.key_type(), key.comment()), (key_type, comment));
        assert_eq!(key.to_string(), text);
        assert_eq!(key.fingerprint().to_string(), fingerprint);
        assert_eq!(Fingerprint::parse(fingerprint), Some(key.fingerprint()));
        assert_eq!(key.max_strength(), Strength::Key);
        for loose in [format!("{text}\n"), format!("  {text}\r\n"), text.replacen(' ', " \t ", 2)] {
            assert_eq!(OperatorKey::parse(&loose), Ok(key.clone()), "{loose:?}");
        }
        let renamed = OperatorKey::parse(&format!("{} 作業 用", text.trim_end_matches(" jo@example"))).unwrap();
        assert_eq!(renamed.comment(), "作業 用");
        assert!(renamed.is_same_key(&key) && renamed != key);
    }
    assert!(!OperatorKey::parse(ED25519).unwrap().is_same_key(&OperatorKey::parse(P256).unwrap()));
}

#[test]
fn only_an_exact_fingerprint_is_one() {
    let good = "SHA256:HxJkKXIc9eeJzKIlub6el//d9KQdmSVZzI1+ehbBxqg";
    for bad in [
        "",
        "SHA256:",
        &good[..49],
        &good.to_lowercase(),
        &format!("{good}="),
        &format!(" {good}"),
        // The last character has two bits that mean nothing.
        &good.replace("Bxqg", "Bxqh"),
        &format!("SHA512:{}", "A".repeat(86)),
    ] {
        assert_eq!(Fingerprint::parse(bad), None, "{bad}");
    }
}

#[test]
fn other_keys_are_refused_with_the_reason() {
    let encoded = ED25519.split(' ').nth(1).unwrap();
    for (text, why) in [
        (String::new(), KeyRefusal::Empty),
        (" \n".to_owned(), KeyRefusal::Empty),
        ("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ r".to_owned(), KeyRefusal::Type("ssh-rsa".to_owned())),
        ("ssh-dss AAAA r".to_owned(), KeyRefusal::Type("ssh-dss".to_owned())),
        (P384.to_owned(), KeyRefusal::Type("ecdsa-sha2-nistp384".to_owned())),
        (format!("no-touch-required {ED25519}"), KeyRefusal::Type("no-touch-required".to_owned())),
        (format!("ecdsa-sha2-nistp256 {encoded}"), KeyRefusal::Malformed),
        ("ssh-ed25519-cert-v01@openssh.com AAAA".to_owned(), KeyRefusal::Certificate),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl".to_owned(), KeyRefusal::PrivateKey),
        (format!("{ED25519}\n{ED25519}"), KeyRefusal::SeveralLines),
        ("ssh-ed25519".to_owned(), KeyRefusal::Malformed),
        ("ssh-ed25519 AAAA".to_owned(), KeyRefusal::Malformed),
        (format!("ssh-ed25519 {}", &encoded[..60]), KeyRefusal::Malformed),
        (format!("ssh-ed25519 {encoded}AAAA"), KeyRefusal::Malformed),
        (format!("ssh-ed25519 {encoded} a\u{7}b"), KeyRefusal::Comment),
        (format!("ssh-ed25519 {encoded} {}", "x".repeat(101)), KeyRefusal::Comment),
        (format!("ssh-ed25519 {encoded} {}", "x".repeat(2000)), KeyRefusal::TooLong),
    ] {
        assert_eq!(OperatorKey::parse(&text), Err(why), "{text}");
    }
    // The padding of P256 hides two bits.
    assert_eq!(OperatorKey::parse(&P256.replace("mtY=", "mtZ=")), Err(KeyRefusal::Malformed));
    let sentence = OperatorKey::parse("ssh-rsa AAAA").unwrap_err().to_string();
    assert_eq!(
        sentence,
        "unsupported type of key 'ssh-rsa'; one of ssh-ed25519, ecdsa-sha2-nistp256, sk-ssh-ed25519@openssh.com, \
         sk-ecdsa-sha2-nistp256@openssh.com"
    );
}

/// Every encoding of a point of small order on the curve of ed25519, with and without a superfluous sign.
fn small_order_points() -> Vec<[u8; 32]> {
    let hex = |text: &str| -> [u8; 32] {
        let byte = |n: usize| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap();
        std::array::from_fn(byte)
    };
    let end = "f".repeat(60);
    let y = [
        format!("01{}", "0".repeat(62)),
        "0".repeat(64),
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05".to_owned(),
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a".to_owned(),
        format!("ec{end}7f"),
        format!("ed{end}7f"),
        format!("ee{end}7f"),
    ];
    let mut all: Vec<[u8; 32]> = y.iter().map(|text| hex(text)).collect();
    for mut point in all.clone() {
        point[31] |= 0x80;
        all.push(point);
    }
    all
}

#[test]
fn a_weak_point_is_no_key() {
    for point in small_order_points() {
        let key = Ed25519PublicKey(point);
        for data in [KeyData::Ed25519(key), KeyData::SkEd25519(SkEd25519::from(key))] {
            let why = OperatorKey::parse(&line(data)).unwrap_err();
            assert!(matches!(why, KeyRefusal::WeakPoint | KeyRefusal::OffCurve), "{point:x?} {why}");
        }
    }
    // Another spelling of y = 3, and a y without a point.
    let mut again = [0xff; 32];
    (again[0], again[31]) = (0xf0, 0x7f);
    assert_eq!(OperatorKey::parse(&line(KeyData::Ed25519(Ed25519PublicKey(again)))), Err(KeyRefusal::WeakPoint));
    let mut two = [0; 32];
    two[0] = 2;
    assert_eq!(OperatorKey::parse(&line(KeyData::Ed25519(Ed25519PublicKey(two)))), Err(KeyRefusal::OffCurve));
}

#[test]
fn a_point_off_the_curve_or_compressed_is_no_key() {
    let good = P256.split(' ').nth(1).unwrap();
    let public = PublicKey::from_openssh(P256).unwrap();
    let point = public.key_data().ecdsa().unwrap().as_sec1_bytes().to_vec();
    let with = |point: &[u8]| {
        let key = EcdsaPublicKey::from_sec1_bytes(point).unwrap();
        OperatorKey::parse(&line(KeyData::Ecdsa(key)))
    };
    assert_eq!(with(&point).unwrap().to_string().split(' ').nth(1), Some(good));
    for at in [1, 32, 33, 64] {
        let mut moved = point.clone();
        moved[at] ^= 1;
        assert_eq!(with(&moved), Err(KeyRefusal::OffCurve));
    }
    let compressed = [&[2 + (point[64] & 1)], &point[1..33]].concat();
    assert_eq!(with(&compressed), Err(KeyRefusal::OffCurve));
}

#[test]
fn a_list_of_keys_has_comments_and_names_the_wrong_line() {
    let text = format!("# operators\n\n{ED25519}\r\n  # another\n{P256}\n");
    let keys = OperatorKey::parse_list(&text).unwrap();
    assert_eq!(keys.iter().map(OperatorKey::key_type).collect::<Vec<_>>(), [KeyType::Ed25519, KeyType::EcdsaP256]);
    assert_eq!(OperatorKey::parse_list(""), Ok(Vec::new()));
    let wrong = OperatorKey::parse_list(&format!("{ED25519}\n{P384}\n")).unwrap_err();
    assert_eq!(wrong, (2, KeyRefusal::Type("ecdsa-sha2-nistp384".to_owned())));
}

#[test]
fn strengths_are_ordered_and_only_fido_keys_prove_a_touch() {
    assert!(Strength::Key < Strength::Touch && Strength::Touch < Strength::TouchAndPin);
    for key_type in KeyType::ALL {
        let most = if key_type.is_fido() { Strength::TouchAndPin } else { Strength::Key };
        assert_eq!(key_type.max_strength(), most);
    }
    for flags in 0..=u8::MAX {
        let expected = match flags {
            0x00 | 0x04 => Ok(Strength::Key),
            0x01 => Ok(Strength::Touch),
            0x05 => Ok(Strength::TouchAndPin),
            _ => Err(SignatureRefusal::Flags(flags)),
        };
        assert_eq!(strength_of(flags), expected);
    }
}

#[test]
fn a_signature_reads_back_as_written_and_proves_its_key() {
    let signature = Signature::parse(SIGNATURE).unwrap();
    assert_eq!(signature.to_string(), SIGNATURE);
    let proof = signature.verify(MESSAGE, NAMESPACE).unwrap();
    assert!(proof.key.is_same_key(&OperatorKey::parse(ED25519).unwrap()));
    assert_eq!((proof.strength, &proof.key), (Strength::Key, signature.claimed_key()));
    assert_eq!(signature.verify(b"hello", NAMESPACE), Err(SignatureRefusal::Wrong));
    let other = SignatureRefusal::Namespace(NAMESPACE.to_owned());
    assert_eq!(signature.verify(MESSAGE, "file"), Err(other));
    for loose in
        [SIGNATURE.replace('\n', "\r\n"), format!("\n\n{}", SIGNATURE.trim_end()), SIGNATURE.replace("juy4\n", "juy4 ")]
    {
        assert_eq!(Signature::parse(&loose), Ok(signature.clone()), "{loose}");
    }
}

#[test]
fn other_texts_are_no_signatures() {
    let body: Vec<&str> = SIGNATURE.lines().skip(1).take(4).collect();
    for (text, why) in [
        (String::new(), SignatureRefusal::NotArmored),
        (body.join("\n"), SignatureRefusal::NotArmored),
        (SIGNATURE.replace("SSH SIGNATURE", "PGP SIGNATURE"), SignatureRefusal::NotArmored),
        (format!("hello\n{SIGNATURE}"), SignatureRefusal::NotArmored),
        (format!("{SIGNATURE}hello"), SignatureRefusal::NotArmored),
        (format!("{BEGIN}{END}\n"), SignatureRefusal::NotArmored),
        (format!("{BEGIN}\n{END}\n"), SignatureRefusal::Malformed),
        (format!("{SIGNATURE}{SIGNATURE}"), SignatureRefusal::Malformed),
        (SIGNATURE.replace("U1NI", "U1NH"), SignatureRefusal::Malformed),
        (SIGNATURE.replace("FQk=", "FQl="), SignatureRefusal::Malformed),
        (SIGNATURE.replace("FQk=", "FQkA"), SignatureRefusal::Malformed),
        (SIGNATURE.replace("FQk=", "FQ=="), SignatureRefusal::Malformed),
        (SIGNATURE.replace("FQk=", "FQk"), SignatureRefusal::Malformed),
        (SIGNATURE.replace("juy4", "ju-4"), SignatureRefusal::Malformed),
        (SIGNATURE.replace("juy4", "juÿ4"), SignatureRefusal::Malformed),
        (SIGNATURE.replace("U1NIU0lHAAAAAQ", "U1NIU0lHAAAAAA"), SignatureRefusal::Version(0)),
        (SIGNATURE.replace("U1NIU0lHAAAAAQ", "U1NIU0lHAAAAAg"), SignatureRefusal::Version(2)),
        (SIGNATURE.replace("AAZzaGE1MTIA", "AAZzaGE1MTMA"), SignatureRefusal::Algorithm),
        ("x".repeat(SIGNATURE_MAX_BYTES + 1), SignatureRefusal::TooLong),
    ] {
        assert_eq!(Signature::parse(&text), Err(why), "{text}");
    }
}
