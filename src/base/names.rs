//! Closed lists of names: enums whose spelling, list of members and parser are declared in one place.

/// Declares an enum with `ALL`, `as_str`, `parse` and `Display`.
macro_rules! names {
    ($(#[$meta:meta])* $vis:vis enum $Name:ident { $($(#[$vmeta:meta])* $Variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $Name { $($(#[$vmeta])* $Variant),* }

        impl $Name {
            /// All members, in order of declaration.
            pub const ALL: &'static [$Name] = &[$($Name::$Variant),*];

            /// The name as written in events and replies.
            pub const fn as_str(self) -> &'static str {
                match self { $($Name::$Variant => $text),* }
            }

            /// The member with exactly this name.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($text => Some($Name::$Variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

/// Lets serde write members of such an enum as their names.
macro_rules! serde_by_name {
    ($Name:ident) => {
        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <String as serde::Deserialize>::deserialize(deserializer)?;
                let all = || $Name::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(", ");
                $Name::parse(&name)
                    .ok_or_else(|| serde::de::Error::custom(format!("unknown name '{name}'; one of {}", all())))
            }
        }
    };
}

pub(crate) use {names, serde_by_name};
